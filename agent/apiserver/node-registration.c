/* SPDX-License-Identifier: Apache-2.0 */
/* This node as the API server sees it: its Node, its Lease, and the events of its pods. */

#include "agent/apiserver/apiserver-private.h"

#include "common/cleanup.h"
#include "common/log.h"

static int describe_local_node(const NodeLabelsTaints **ret_own, NodeStatus *ret_status,
                               void *userdata) {
        ApiServerSync *api = userdata;

        *ret_own = api->config.node_inputs.local;
        return apiserver_collect_node_status(api, ret_status);
}

/* ---- what the server says ---- */

/* One that is gone says nothing of what others want of the next. */
static void on_remote_node(const NodeLabelsTaints *external, const char *uid, void *userdata) {
        ApiServerSync *api = userdata;
        bool has_changed = !streq_ptr(api->node_uid, uid);

        if (external)
                api->config.on_node(external, api->config.userdata);
        if (!has_changed)
                return;
        free(api->node_uid);
        api->node_uid = uid ? strdup(uid) : NULL;
        if (kube_lease_controller_set_node(api->lease, uid) < 0)
                log_error("Out of memory, the Lease of the node is not renewed");
        if (uid)
                log_info("The API server knows this node");
        apiserver_report_all_pods(api); /* mirrors belong to the Node */
}

static void on_node_registration_error(const char *error, unsigned status, void *userdata) {
        apiserver_set_permission_error(userdata, PERMISSION_NODE, error, status);
        if (!apiserver_is_unreachable(userdata, error, status) && error)
                log_warning("The Node cannot be kept at the API server: %s", error);
}

static void on_node_lease_error(const char *error, unsigned status, void *userdata) {
        apiserver_set_permission_error(userdata, PERMISSION_LEASE, error, status);
        if (!apiserver_is_unreachable(userdata, error, status) && error)
                log_warning("The Lease of this node cannot be renewed: %s", error);
}

/* Nothing that was listed before is sure any more. */
static void on_apiserver_history_lost(void *userdata) {
        ApiServerSync *api = userdata;

        log_warning("The API server has forgotten what it said before; all is listed anew");
        node_status_updater_resync(api->node);
        kube_reflector_relist(api->pod_reflector, 0);
}

int apiserver_register_node(ApiServerSync *api) {
        sd_event *event = api->config.event;
        int r = kube_lease_controller_new(
                event,
                &(KubeLeaseControllerSpec){ .client = api->client,
                                            .node_name = api->config.node_name,
                                            .on_error = on_node_lease_error,
                                            .on_history_lost = on_apiserver_history_lost,
                                            .userdata = api },
                &api->lease);

        if (r >= 0)
                r = kube_event_sink_new(event, &(KubeEventSinkSpec){ .client = api->client },
                                        &api->events);
        if (r < 0)
                return r;
        return node_status_updater_new(
                event,
                &(NodeStatusUpdaterSpec){ .client = api->client,
                                          .name = api->config.node_name,
                                          .registers_node = true,
                                          .get_local_node = describe_local_node,
                                          .on_node = on_remote_node,
                                          .on_error = on_node_registration_error,
                                          .userdata = api },
                &api->node);
}

void apiserver_free_node(ApiServerSync *api) {
        node_status_updater_free(api->node);
        kube_lease_controller_free(api->lease);
        kube_event_sink_free(api->events);
}

void apiserver_node_changed(ApiServerSync *api) {
        if (api->node)
                node_status_updater_trigger(api->node);
}

void apiserver_record_event(ApiServerSync *api, const char *json) {
        cleanup_free char *renamed = apiserver_rename_adopted_event(api, json);

        if (api->events)
                (void) kube_event_sink_submit(api->events, renamed ? renamed : json);
}

bool apiserver_accepts_events(const ApiServerSync *api) {
        return api->events;
}
