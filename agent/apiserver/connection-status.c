/* SPDX-License-Identifier: Apache-2.0 */
/* How this node stands with the API server: whether it is reached, and what it refuses. */

#include "agent/apiserver/apiserver-private.h"

#include "common/cleanup.h"
#include "common/clock.h"

enum {
        REFUSED_PODS_MAX = 5, /* that are told one by one */
};

static const char *const permission_names[N_APISERVER_PERMISSIONS] = {
        [PERMISSION_NODE] = "the Node",
        [PERMISSION_LEASE] = "the Lease",
        [PERMISSION_PODS] = "pods",
        [PERMISSION_SERVICES] = "services",
        [PERMISSION_DAEMONSETS] = "DaemonSets",
};

/* A server that has no time, or something else than what we believe, refuses nothing. */
static bool is_permission_denied(unsigned status) {
        return status >= 400 && status < 500 && status != 404 && status != 408 && status != 409 &&
               status != 410 && status != 429;
}

void apiserver_set_permission_error(ApiServerSync *api, ApiServerPermission permission,
                                    const char *error, unsigned status) {
        char **refused = &api->refused[permission];
        const char *sentence = error && is_permission_denied(status) ? error : NULL;

        if ((error && !sentence) || streq_ptr(*refused, sentence))
                return;
        free(*refused);
        *refused = sentence ? strdup(sentence) : NULL;
        api->refused_since = now_realtime_usec();
        apiserver_node_changed(api);
        api->config.on_state_changed(api->config.userdata);
}

void apiserver_clear_permission_errors(ApiServerSync *api) {
        for (ApiServerPermission c = 0; c < N_APISERVER_PERMISSIONS; c++) {
                free(api->refused[c]);
                api->refused[c] = NULL;
        }
}

static void print_refused_pods(const ApiServerSync *api, const char *separator, FILE *out) {
        unsigned n = 0;

        for (const ApiServerPod *pod = api->pods; pod; pod = pod->next) {
                if (!pod->refused || n++ >= REFUSED_PODS_MAX)
                        continue;
                fprintf(out, "%swhat is told of pod '%s': %s", separator, pod->key, pod->refused);
                separator = "; ";
        }
        if (n > REFUSED_PODS_MAX)
                fprintf(out, "; and of %u others", n - REFUSED_PODS_MAX);
}

char *apiserver_print_permission_errors(const ApiServerSync *api, bool with_pods) {
        const char *separator = "";
        cleanup_free char *text = NULL;
        size_t length;
        FILE *out = open_memstream(&text, &length);

        if (!out)
                return NULL;
        for (ApiServerPermission c = 0; c < N_APISERVER_PERMISSIONS; c++) {
                if (!api->refused[c])
                        continue;
                fprintf(out, "%s%s: %s", separator, permission_names[c], api->refused[c]);
                separator = "; ";
        }
        if (with_pods)
                print_refused_pods(api, separator, out);
        if (fclose(out) != 0 || !text[0])
                return NULL;
        return TAKE_PTR(text);
}

static const char *first_permission_error(const ApiServerSync *api) {
        for (ApiServerPermission c = 0; c < N_APISERVER_PERMISSIONS; c++)
                if (api->refused[c])
                        return api->refused[c];
        return NULL;
}

const char *apiserver_last_error(const ApiServerSync *api) {
        KubeClientState state = { 0 };

        if (api->last_error || !api->client)
                return api->last_error ? api->last_error : api->certificate_error;
        state = kube_client_state(api->client);
        if (!state.is_reached)
                return state.last_error;
        if (api->pod_watch_error)
                return api->pod_watch_error;
        if (state.credentials_error || api->certificate_error)
                return state.credentials_error ? state.credentials_error : api->certificate_error;
        return first_permission_error(api);
}

void apiserver_connection_status(const ApiServerSync *api, NodeApiServerConnection *ret,
                                 char **ret_refused) {
        KubeClientState state = { 0 };
        const char *last_error = api->last_error; /* of the kubeconfig, without which nobody asks */

        if (api->client)
                state = kube_client_state(api->client);
        if (state.last_error)
                last_error = state.last_error;
        if (!last_error)
                last_error = api->certificate_error ? api->certificate_error
                                                    : state.last_unreachable_error;
        *ret_refused = apiserver_print_permission_errors(api, /* with_pods= */ true);
        *ret = (NodeApiServerConnection){
                .has_joined = true,
                .server = state.server,
                .is_reached = state.is_reached,
                .since = state.since,
                .last_error = last_error,
                .daemonsets_by = apiserver_daemonsets_placed_by(api),
                .refused = *ret_refused,
                .refused_since = api->refused_since,
        };
}
