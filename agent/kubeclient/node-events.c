/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/kubeclient/node-events.h"

#include "agent/kubeclient/node-local-labels.h"
#include "agent/kubeclient/node-status-json.h"
#include "common/cleanup.h"
#include "common/json-text.h"

#include <stdio.h>

enum {
        NODE_EVENT_MESSAGE_MAX = 1024
};

typedef struct NodeChange {
        const json_t *before; /* NULL: the Node is new */
        const json_t *after;
        const char *name;
        NodeEventCallback on_event;
        void *userdata;
} NodeChange;

static const struct {
        const char *type;
        const char *reason_true, *reason_false;
} condition_events[] = {
        { "MemoryPressure", "NodeHasInsufficientMemory", "NodeHasSufficientMemory" },
        { "DiskPressure", "NodeHasDiskPressure", "NodeHasNoDiskPressure" },
        { "PIDPressure", "NodeHasInsufficientPID", "NodeHasSufficientPID" },
        { "Ready", "NodeReady", "NodeNotReady" },
};

static void report_node_event(const NodeChange *change, PodEventKind kind, const char *reason,
                              const char *message) {
        change->on_event(&(PodEvent){ .kind = kind, .reason = reason, .message = message },
                         change->userdata);
}

/* The kubelet's message. */
static void report_node_status_event(const NodeChange *change, const char *reason) {
        char message[NODE_EVENT_MESSAGE_MAX];

        (void) snprintf(message, sizeof(message), "Node %s status is now: %s", change->name,
                        reason);
        report_node_event(change, POD_EVENT_NORMAL, reason, message);
}

static const char *find_node_condition_status(const json_t *node, const char *type) {
        const json_t *list = json_object_get(json_object_get(node, "status"), "conditions");
        const json_t *item;
        size_t i;

        json_array_foreach(list, i, item) {
                const char *name = json_text(item, "type");

                if (name && streq(name, type))
                        return json_text(item, "status");
        }
        return NULL;
}

static void compare_condition(const NodeChange *change, size_t i) {
        const char *before = find_node_condition_status(change->before, condition_events[i].type);
        const char *after = find_node_condition_status(change->after, condition_events[i].type);
        bool is_true = after && streq(after, "True");

        if (!after || streq_ptr(before, after))
                return;
        report_node_status_event(change, is_true ? condition_events[i].reason_true
                                                 : condition_events[i].reason_false);
}

static const char *get_boot_id(const json_t *node) {
        const json_t *info = json_object_get(json_object_get(node, "status"), "nodeInfo");
        const char *id = json_text(info, "bootID");

        return id ? id : "";
}

static void compare_boot_ids(const NodeChange *change) {
        const char *before = get_boot_id(change->before), *after = get_boot_id(change->after);
        char message[NODE_EVENT_MESSAGE_MAX];

        if (!before[0] || !after[0] || streq(before, after))
                return;
        (void) snprintf(message, sizeof(message), "Node %s has been rebooted, boot id: %s",
                        change->name, after);
        report_node_event(change, POD_EVENT_WARNING, "Rebooted", message);
}

/* A label that another writer has changed or removed, and that the request has restored. */
static void report_restored_label(const char *key, const char *removed, const char *value,
                                  void *userdata) {
        const NodeChange *change = userdata;
        char message[NODE_EVENT_MESSAGE_MAX];

        if (removed)
                (void) snprintf(message, sizeof(message),
                                "Label %s=%s was set back to %s=%s: it is defined by the node "
                                "itself, in its configuration (mainstay.nodeLabels) or by its "
                                "machine, and is changed there",
                                key, removed, key, value);
        else
                (void) snprintf(message, sizeof(message),
                                "Label %s=%s was removed and is set again: it is defined by the "
                                "node itself, in its configuration (mainstay.nodeLabels) or by "
                                "its machine, and is changed there",
                                key, value);
        report_node_event(change, POD_EVENT_WARNING, "LabelRestored", message);
}

void node_events_compare(const json_t *before, const json_t *after, NodeEventCallback on_event,
                         void *userdata) {
        const json_t *metadata = json_object_get(after, "metadata");
        NodeChange change = { before, after, json_text(metadata, "name"), on_event, userdata };

        if (!change.name)
                return;
        compare_boot_ids(&change);
        for (size_t i = 0; i < N_ELEMENTS(condition_events); i++)
                compare_condition(&change, i);
        if (before)
                node_local_labels_find_restored(before, after, report_restored_label, &change);
}

void node_events_check_schedulable(bool *is_unschedulable, const json_t *node,
                                   NodeEventCallback on_event, void *userdata) {
        const json_t *spec = json_object_get(node, "spec"),
                     *metadata = json_object_get(node, "metadata");
        NodeChange change = { .name = json_text(metadata, "name"),
                              .on_event = on_event,
                              .userdata = userdata };
        bool is_now = json_is_true(json_object_get(spec, "unschedulable"));

        if (!change.name || is_now == *is_unschedulable)
                return;
        *is_unschedulable = is_now;
        report_node_status_event(&change, is_now ? "NodeNotSchedulable" : "NodeSchedulable");
}
