/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Thresholds of probes (successThreshold, failureThreshold): decides what the results of a probe
 * mean. Pure. */

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

/* The latest consecutive equal results of one probe of one attempt. Initially { 0 }. */
typedef struct ProbeResultRun {
        bool has_result;
        bool last; /* success or not */
        unsigned n_alike;
} ProbeResultRun;

typedef enum ProbeVerdict {
        PROBE_UNDECIDED, /* the previous verdict stays */
        PROBE_PASSED,
        PROBE_FAILED,
} ProbeVerdict;

/* Adds a result: as many consecutive equal results as the threshold yield a verdict. */
ProbeVerdict probe_apply_threshold(ProbeResultRun *run, const Probe *spec, bool success);
