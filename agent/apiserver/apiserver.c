/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/apiserver/apiserver-private.h"

#include "common/cleanup.h"
#include "common/log.h"
#include "common/strv.h"

enum {
        UNREACHABLE_ERRORS_MAX = 8, /* reasons for which the server is away, that are said */
};

static void clear_updated_keys(ApiServerSync *api) {
        strv_free(api->updated_keys);
        api->updated_keys = NULL;
        api->is_everything_updated = false;
}

static int on_object_updates_due(sd_event_source *source, void *userdata) {
        ApiServerSync *api = userdata;

        pod_manager_on_objects_changed(api->config.pod_manager, apiserver_has_updates_for, api);
        clear_updated_keys(api);
        return 0;
}

void apiserver_schedule_recompute(ApiServerSync *api) {
        api->config.on_recompute_due(api->config.userdata);
}

void apiserver_schedule_object_update(ApiServerSync *api, const char *which) {
        if (!which || strv_append(&api->updated_keys, which) < 0)
                api->is_everything_updated = true;
        (void) sd_event_source_set_enabled(api->objects_update_source, SD_EVENT_ONESHOT);
}

/* After all news of a turn. */
static int add_deferred_source(ApiServerSync *api, sd_event_handler_t on_due,
                               sd_event_source **ret) {
        int r = sd_event_add_defer(api->config.event, ret, on_due, api);

        if (r >= 0)
                r = sd_event_source_set_priority(*ret, SD_EVENT_PRIORITY_NORMAL + 5);
        return r < 0 ? r : sd_event_source_set_enabled(*ret, SD_EVENT_OFF);
}

int apiserver_new(const ApiServerConfig *config, ApiServerSync **ret) {
        ApiServerSync *api = calloc(1, sizeof(*api));
        int r;

        if (!api)
                return -ENOMEM;
        api->config = *config;
        r = apiserver_cache_new(api);
        if (r >= 0)
                r = apiserver_services_new(api);
        if (r >= 0)
                r = apiserver_daemonsets_new(api);
        if (r >= 0)
                r = add_deferred_source(api, on_object_updates_due, &api->objects_update_source);
        if (r < 0)
                apiserver_free(api);
        else
                *ret = api;
        return r;
}

ApiServerSync *apiserver_free(ApiServerSync *api) {
        if (!api)
                return NULL;
        apiserver_free_credentials(api);
        kube_work_queue_free(api->pod_writer);
        kube_reflector_free(api->pod_reflector);
        apiserver_free_node(api);
        apiserver_forget_tokens(api, NULL);
        kube_work_queue_free(api->token_writer);
        apiserver_free_services(api);
        apiserver_free_daemonsets(api);
        apiserver_free_objects(api);
        sd_event_source_disable_unref(api->objects_update_source);
        sd_event_source_disable_unref(api->token_timer);
        apiserver_free_pods(api);
        clear_updated_keys(api);
        apiserver_cache_free(api);
        kube_client_free(api->client);
        kubeconfig_done(&api->kubeconfig);
        free(api->node_uid);
        free(api->pod_watch_error);
        strv_free(api->unreachable_errors);
        apiserver_clear_permission_errors(api);
        free(api);
        return NULL;
}

static int connect_apiserver(ApiServerSync *api, Error *reterr) {
        KubeWorkQueueSpec pods = apiserver_pod_writer, tokens = apiserver_token_writer;
        int r = kube_client_new(api->config.event, &api->kubeconfig, &api->client, reterr);

        if (r < 0)
                return r;
        kube_client_set_state_callback(api->client, api->config.on_state_changed,
                                       api->config.userdata);
        pods.client = tokens.client = api->client;
        pods.userdata = tokens.userdata = api;
        r = kube_work_queue_new(api->config.event, &pods, &api->pod_writer);
        if (r >= 0)
                r = kube_work_queue_new(api->config.event, &tokens, &api->token_writer);
        if (r >= 0)
                r = apiserver_request_due_tokens(api);
        if (r >= 0)
                r = apiserver_register_node(api);
        if (r >= 0)
                r = apiserver_watch_services(api);
        if (r >= 0)
                r = apiserver_watch_pods(api);
        return r < 0 ? r : apiserver_start_daemonsets(api);
}

static int replace_kubeconfig(ApiServerSync *api, const Kubeconfig *kubeconfig) {
        Kubeconfig copy = { 0 };
        int r = kubeconfig_copy(kubeconfig, &copy);

        if (r < 0)
                return r;
        kubeconfig_done(&api->kubeconfig);
        api->kubeconfig = copy;
        return 0;
}

int apiserver_use_kubeconfig(ApiServerSync *api, const Kubeconfig *kubeconfig, Error *reterr) {
        const char *identity_error;
        int r;

        if (api->client) {
                r = kube_client_reload(api->client, kubeconfig, reterr);
                return r < 0 ? r : replace_kubeconfig(api, kubeconfig);
        }
        r = replace_kubeconfig(api, kubeconfig);
        if (r >= 0)
                r = connect_apiserver(api, reterr);
        if (r < 0)
                return r;
        log_info("The API server of %s is %s", api->config.kubeconfig, api->kubeconfig.server);
        identity_error = kube_client_state(api->client).credentials_error;
        if (identity_error)
                log_warning("%s: %s", api->config.kubeconfig, identity_error);
        apiserver_schedule_recompute(api); /* what pods refer to is followed from now on */
        api->config.on_state_changed(api->config.userdata);
        return 0;
}

bool apiserver_is_unreachable(ApiServerSync *api, const char *error, unsigned status) {
        if (!error || status != 0 || kube_client_state(api->client).is_reached) {
                if (api->unreachable_errors)
                        log_info("The API server is reached again");
                api->unreachable_errors = strv_free(api->unreachable_errors);
                return false;
        }
        if (!strv_contains(api->unreachable_errors, error) &&
            strv_length(api->unreachable_errors) < UNREACHABLE_ERRORS_MAX) {
                log_warning("The API server is not reached: %s; going on without it", error);
                (void) strv_append(&api->unreachable_errors, error);
        }
        return true;
}

void apiserver_set_synced(ApiServerSync *api) {
        api->is_synced = true;
        apiserver_node_changed(api);
        apiserver_report_all_pods(api);
}

void apiserver_set_shutting_down(ApiServerSync *api, bool is_shutting_down) {
        api->is_shutting_down = is_shutting_down;
        apiserver_node_changed(api);
        apiserver_report_all_pods(api);
}
