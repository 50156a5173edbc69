/* SPDX-License-Identifier: Apache-2.0 */
/* How this node stands with the API server: whether it is reached, and what it refuses. */

#include "agent/cluster-private.h"

#include "common/cleanup.h"
#include "common/clock.h"

enum {
        REFUSED_PODS_MAX = 5, /* that are told one by one */
};

static const char *const concerns[N_CLUSTER_CONCERNS] = {
        [CONCERN_NODE] = "the Node",
        [CONCERN_LEASE] = "the Lease",
        [CONCERN_PODS] = "pods",
        [CONCERN_SERVICES] = "services",
        [CONCERN_DAEMONSETS] = "DaemonSets",
};

/* A server that has no time, or something else than what we believe, refuses nothing. */
static bool is_refusal(unsigned status) {
        return status >= 400 && status < 500 && status != 404 && status != 408 && status != 409 &&
               status != 410 && status != 429;
}

void cluster_note_refusal(Cluster *cluster, ClusterConcern concern, const char *error,
                          unsigned status) {
        char **refused = &cluster->refused[concern];
        const char *sentence = error && is_refusal(status) ? error : NULL;

        if ((error && !sentence) || streq_ptr(*refused, sentence))
                return;
        free(*refused);
        *refused = sentence ? strdup(sentence) : NULL;
        cluster->refused_since = now_realtime_usec();
        cluster_node_changed(cluster);
        cluster->config.on_state(cluster->config.userdata);
}

void cluster_forget_refusals(Cluster *cluster) {
        for (ClusterConcern c = 0; c < N_CLUSTER_CONCERNS; c++) {
                free(cluster->refused[c]);
                cluster->refused[c] = NULL;
        }
}

static void print_pods(const Cluster *cluster, const char *separator, FILE *out) {
        unsigned n = 0;

        for (const ClusterPod *pod = cluster->pods; pod; pod = pod->following) {
                if (!pod->refused || n++ >= REFUSED_PODS_MAX)
                        continue;
                fprintf(out, "%swhat is told of pod '%s': %s", separator, pod->key, pod->refused);
                separator = "; ";
        }
        if (n > REFUSED_PODS_MAX)
                fprintf(out, "; and of %u others", n - REFUSED_PODS_MAX);
}

char *cluster_print_refusals(const Cluster *cluster, bool with_pods) {
        const char *separator = "";
        cleanup_free char *text = NULL;
        size_t length;
        FILE *out = open_memstream(&text, &length);

        if (!out)
                return NULL;
        for (ClusterConcern c = 0; c < N_CLUSTER_CONCERNS; c++) {
                if (!cluster->refused[c])
                        continue;
                fprintf(out, "%s%s: %s", separator, concerns[c], cluster->refused[c]);
                separator = "; ";
        }
        if (with_pods)
                print_pods(cluster, separator, out);
        if (fclose(out) != 0 || !text[0])
                return NULL;
        return TAKE_PTR(text);
}

static const char *first_refusal(const Cluster *cluster) {
        for (ClusterConcern c = 0; c < N_CLUSTER_CONCERNS; c++)
                if (cluster->refused[c])
                        return cluster->refused[c];
        return NULL;
}

const char *cluster_trouble(const Cluster *cluster) {
        KubeClientState state = { 0 };

        if (cluster->trouble || !cluster->client)
                return cluster->trouble ? cluster->trouble : cluster->certificate_trouble;
        state = kube_client_state(cluster->client);
        if (!state.is_reached)
                return state.trouble;
        if (cluster->pods_trouble)
                return cluster->pods_trouble;
        if (state.identity_trouble || cluster->certificate_trouble)
                return state.identity_trouble ? state.identity_trouble
                                              : cluster->certificate_trouble;
        return first_refusal(cluster);
}

void cluster_standing(const Cluster *cluster, NodeStanding *ret, char **ret_refused) {
        KubeClientState state = { 0 };
        const char *trouble = cluster->trouble; /* of the kubeconfig, without which nobody asks */

        if (cluster->client)
                state = kube_client_state(cluster->client);
        if (state.trouble)
                trouble = state.trouble;
        if (!trouble)
                trouble = cluster->certificate_trouble ? cluster->certificate_trouble
                                                       : state.last_trouble;
        *ret_refused = cluster_print_refusals(cluster, /* with_pods= */ true);
        *ret = (NodeStanding){
                .has_joined = true,
                .server = state.server,
                .is_reached = state.is_reached,
                .since = state.since,
                .trouble = trouble,
                .daemonsets_by = cluster_daemonsets_by(cluster),
                .refused = *ret_refused,
                .refused_since = cluster->refused_since,
        };
}
