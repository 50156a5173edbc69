/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What a row of a probe's results means: pure, and Kubernetes' rule. */

#include "agent/model/pod.h"

typedef enum ProbeKind {
        PROBE_STARTUP,
        PROBE_LIVENESS,
        PROBE_READINESS,
        N_PROBE_KINDS,
} ProbeKind;

extern const char *const probe_kind_names[N_PROBE_KINDS];  /* "startup" */
extern const char *const probe_kind_titles[N_PROBE_KINDS]; /* "Startup" */

/* The container's probe of that kind, or NULL. */
const Probe *container_probe(const Container *container, ProbeKind kind);

/* The last results of one probe of one attempt. Zeroed: there was none. */
typedef struct ProbeResultRun {
        bool has_result;
        bool last; /* success or not */
        unsigned n_alike;
} ProbeResultRun;

typedef enum ProbeVerdict {
        PROBE_UNDECIDED, /* what held before holds */
        PROBE_PASSED,
        PROBE_FAILED,
} ProbeVerdict;

/* A result comes in: so many alike in a row are a verdict. */
ProbeVerdict probe_add_result(ProbeResultRun *run, const Probe *spec, bool success);
