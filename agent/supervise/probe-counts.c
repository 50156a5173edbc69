/* SPDX-License-Identifier: Apache-2.0 */
/* What has come of probes, in the kubelet's words. */

#include "agent/supervise/pod-internal.h"

static const char *const results[N_ACTION_RESULTS] = {
        [ACTION_SUCCEEDED] = "successful",
        [ACTION_FAILED] = "failed",
        [ACTION_BROKEN] = "unknown",
};

static void tell(const PodContainer *c, ProbeKind kind, probe_sample_t each, void *userdata) {
        const ObjectMeta *pod = &c->pod->pod->metadata;

        for (size_t i = 0; i < N_ACTION_RESULTS; i++) {
                const ProbeSample sample = {
                        .probe_type = probe_kind_titles[kind],
                        .result = results[i],
                        .container = c->spec->name,
                        .pod = pod->name,
                        .namespace = pod->namespace,
                        .uid = pod->uid,
                        .n = c->probers.kinds[kind].n_results[i],
                };

                if (sample.n > 0)
                        each(&sample, userdata);
        }
}

void pod_life_each_probe(const PodLife *life, probe_sample_t each, void *userdata) {
        for (size_t i = 0; i < life->n_containers; i++)
                for (size_t kind = 0; kind < N_PROBE_KINDS; kind++)
                        tell(&life->containers[i], (ProbeKind) kind, each, userdata);
}
