/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pods/probe/probe-threshold.h"

#include <limits.h>

const char *const probe_kind_names[N_PROBE_KINDS] = {
        [PROBE_STARTUP] = "startup",
        [PROBE_LIVENESS] = "liveness",
        [PROBE_READINESS] = "readiness",
};

const char *const probe_kind_titles[N_PROBE_KINDS] = {
        [PROBE_STARTUP] = "Startup",
        [PROBE_LIVENESS] = "Liveness",
        [PROBE_READINESS] = "Readiness",
};

const Probe *container_probe(const Container *container, ProbeKind kind) {
        switch (kind) {
        case PROBE_STARTUP:
                return container->startup_probe;
        case PROBE_LIVENESS:
                return container->liveness_probe;
        case PROBE_READINESS:
                return container->readiness_probe;
        case N_PROBE_KINDS:
                break;
        }
        return NULL;
}

ProbeVerdict probe_apply_threshold(ProbeResultRun *run, const Probe *spec, bool success) {
        int64_t threshold = success ? spec->success_threshold.value : spec->failure_threshold.value;

        if (!run->has_result || run->last != success)
                *run = (ProbeResultRun){ .has_result = true, .last = success };
        if (run->n_alike < UINT_MAX)
                run->n_alike++;
        if ((int64_t) run->n_alike < threshold)
                return PROBE_UNDECIDED;
        return success ? PROBE_PASSED : PROBE_FAILED;
}
