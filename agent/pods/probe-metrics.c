/* SPDX-License-Identifier: Apache-2.0 */
/* What has come of probes, in the kubelet's words. */

#include "agent/pods/pod-worker-private.h"

static const char *const probe_result_names[N_HANDLER_RESULTS] = {
        [HANDLER_SUCCEEDED] = "successful",
        [HANDLER_FAILED] = "failed",
        [HANDLER_ERROR] = "unknown",
};

static void report_probe_samples(const PodContainer *c, ProbeKind kind, probe_sample_t each,
                                 void *userdata) {
        const ObjectMeta *pod = &c->pod->pod->metadata;

        for (size_t i = 0; i < N_HANDLER_RESULTS; i++) {
                const ProbeSample sample = {
                        .probe_type = probe_kind_titles[kind],
                        .result = probe_result_names[i],
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

void pod_worker_for_each_probe(const PodWorker *worker, probe_sample_t each, void *userdata) {
        for (size_t i = 0; i < worker->n_containers; i++)
                for (size_t kind = 0; kind < N_PROBE_KINDS; kind++)
                        report_probe_samples(&worker->containers[i], (ProbeKind) kind, each,
                                             userdata);
}
