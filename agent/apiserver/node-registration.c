/* SPDX-License-Identifier: Apache-2.0 */
/* Connects the Node updater, the Lease controller and the event sink of kubeclient with this node.
 */

#include "agent/apiserver/node-registration.h"

#include "agent/kubeclient/event-sink.h"
#include "agent/kubeclient/node-lease-controller.h"
#include "agent/kubeclient/node-status-updater.h"
#include "common/cleanup.h"
#include "common/log.h"

struct NodeRegistration {
        NodeRegistrationSpec spec;
        NodeStatusUpdater *updater;
        KubeLeaseController *lease;
        KubeEventSink *events;
        char *uid; /* of the Node object; NULL while it does not exist */
        bool is_shutting_down;
};

static int get_local_node(const NodeLabelsTaints **ret_local, NodeStatus *ret_status,
                          void *userdata) {
        const NodeRegistration *node = userdata;
        cleanup_free char *refused = connection_status_print_refused(node->spec.connection);

        *ret_local = node->spec.inputs.local;
        /* The reason is the kubelet's. An agent that takes over the pods of an earlier one is
         * Ready: a restart must not make controllers mark the pods as unready. */
        return collect_node_status(&node->spec.inputs,
                                   node->is_shutting_down ? "node is shutting down" : NULL, refused,
                                   ret_status);
}

/* ---- callbacks ---- */

/* A deleted Node does not determine the labels and taints of its successor. */
static void on_remote_node(const NodeLabelsTaints *external, const char *uid, void *userdata) {
        NodeRegistration *node = userdata;
        bool has_changed = !streq_ptr(node->uid, uid);

        if (external)
                node->spec.on_external(external, node->spec.userdata);
        if (!has_changed)
                return;
        free(node->uid);
        node->uid = uid ? strdup(uid) : NULL;
        if (kube_lease_controller_set_node(node->lease, uid) < 0)
                log_error("Cannot renew the Lease of node '%s': out of memory; the API server will "
                          "consider the node NotReady",
                          node->spec.node_name);
        if (uid)
                log_info("The Node '%s' is registered at the API server", node->spec.node_name);
        node->spec.on_node_uid(uid, node->spec.userdata);
}

static void on_registered_node_event(const PodEvent *event, void *userdata) {
        const NodeRegistration *node = userdata;

        node->spec.on_event(event, node->spec.userdata);
}

static void on_node_registration_error(const char *error, unsigned status, void *userdata) {
        const NodeRegistration *node = userdata;

        connection_status_set_permission(node->spec.connection, PERMISSION_NODE, error, status);
        if (!connection_status_is_unreachable(node->spec.connection, error, status) && error)
                log_warning("Cannot register or update the Node '%s': %s; pods keep running, "
                            "retrying within a minute",
                            node->spec.node_name, error);
}

static void on_node_lease_error(const char *error, unsigned status, void *userdata) {
        const NodeRegistration *node = userdata;

        connection_status_set_permission(node->spec.connection, PERMISSION_LEASE, error, status);
        if (!connection_status_is_unreachable(node->spec.connection, error, status) && error)
                log_warning("Cannot renew the Lease of node '%s': %s; retrying within 10 s",
                            node->spec.node_name, error);
}

static void on_server_history_lost(void *userdata) {
        NodeRegistration *node = userdata;

        log_warning("The resourceVersion of the API server went back (backup restored?); listing "
                    "all objects again");
        node_status_updater_resync(node->updater);
        node->spec.on_history_lost(node->spec.userdata);
}

/* ---- construction ---- */

int node_registration_new(const NodeRegistrationSpec *spec, NodeRegistration **ret) {
        NodeRegistration *node = calloc(1, sizeof(*node));

        if (!node)
                return -ENOMEM;
        node->spec = *spec;
        *ret = node;
        return 0;
}

NodeRegistration *node_registration_free(NodeRegistration *node) {
        if (!node)
                return NULL;
        node_status_updater_free(node->updater);
        kube_lease_controller_free(node->lease);
        kube_event_sink_free(node->events);
        free(node->uid);
        free(node);
        return NULL;
}

int node_registration_start(NodeRegistration *node, KubeClient *client) {
        sd_event *event = node->spec.event;
        int r = kube_lease_controller_new(
                event,
                &(KubeLeaseControllerSpec){ .client = client,
                                            .node_name = node->spec.node_name,
                                            .on_error = on_node_lease_error,
                                            .on_history_lost = on_server_history_lost,
                                            .userdata = node },
                &node->lease);

        if (r < 0)
                return r;
        r = kube_event_sink_new(event, &(KubeEventSinkSpec){ .client = client }, &node->events);
        if (r < 0)
                return r;
        return node_status_updater_new(
                event,
                &(NodeStatusUpdaterSpec){ .client = client,
                                          .name = node->spec.node_name,
                                          .registers_node = true,
                                          .get_local_node = get_local_node,
                                          .on_node = on_remote_node,
                                          .on_event = on_registered_node_event,
                                          .on_error = on_node_registration_error,
                                          .userdata = node },
                &node->updater);
}

/* ---- changes ---- */

void node_registration_update(NodeRegistration *node) {
        if (node->updater)
                node_status_updater_trigger(node->updater);
}

void node_registration_set_shutting_down(NodeRegistration *node, bool is_shutting_down) {
        node->is_shutting_down = is_shutting_down;
        node_registration_update(node);
}

void node_registration_record_event(NodeRegistration *node, const char *json) {
        if (node->events)
                (void) kube_event_sink_submit(node->events, json);
}

bool node_registration_accepts_events(const NodeRegistration *node) {
        return node->events;
}

void node_registration_dump(const NodeRegistration *node, FILE *out) {
        if (node->updater)
                node_status_updater_dump(node->updater, out);
        if (node->lease)
                kube_lease_controller_dump(node->lease, out);
        if (node->events)
                kube_event_sink_dump(node->events, out);
}
