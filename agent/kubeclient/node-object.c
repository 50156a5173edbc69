/* SPDX-License-Identifier: Apache-2.0 */
/* Builds the Node for registration and the patch of its status, and reads the server's Node. */

#include "agent/kubeclient/node-object.h"

#include "agent/kubeclient/json-string.h"
#include "agent/kubeclient/node-local-labels.h"
#include "agent/kubeclient/node-status-json.h"
#include "common/cleanup.h"
#include "common/json-text.h"

/* Registering */

static json_t *build_node_condition_list(const NodeStatus *status, uint64_t now) {
        json_t *list = json_array();

        for (unsigned i = 0; i < N_NODE_REPORTED_CONDITIONS; i++) {
                uint64_t since = node_reported_condition_since(status, i);

                if (!node_has_reported_condition(status, i))
                        continue;
                (void) json_array_append_new(
                        list, node_condition_to_json(status, i, since > 0 ? since : now, now));
        }
        return list;
}

char *node_object_new(const NodeLabelsTaints *own, const NodeStatus *status, uint64_t now) {
        json_t *body = node_status_to_json(status);
        cleanup_json json_t *json = NULL;

        if (!body)
                return NULL;
        (void) json_object_set_new(body, "conditions", build_node_condition_list(status, now));
        json = json_pack("{s:s, s:s, s:{s:s, s:o, s:o}, s:{s:o*}, s:o}", "kind", "Node",
                         "apiVersion", "v1", "metadata", "name", own->name, "labels",
                         node_local_labels_to_json(own), "annotations",
                         node_local_annotations_to_json(own), "spec", "taints",
                         node_local_taints_to_json(own), "status", body);
        return json ? json_to_text(json, JSON_COMPACT) : NULL;
}

/* Differences */

static const char *get_node_text(const json_t *object, const char *key) {
        const char *text = json_text(object, key);

        return text ? text : "";
}

static void set_if_not_empty(json_t *object, const char *key, json_t *value) {
        if (value && json_object_size(value) + json_array_size(value) > 0)
                (void) json_object_set_new(object, key, value);
        else
                json_decref(value);
}

/* Keys whose value differs, and null for those that are not desired. */
static json_t *diff_map(json_t *before, json_t *wanted, bool removes) {
        json_t *diff = json_object(), *value;
        const char *key;

        json_object_foreach(wanted, key, value)
                if (!json_equal(json_object_get(before, key), value))
                        (void) json_object_set(diff, key, value);
        json_object_foreach(before, key, value)
                if (removes && !json_object_get(wanted, key))
                        (void) json_object_set_new(diff, key, json_null());
        return diff;
}

static json_t *find_node_condition(const json_t *status, const char *type) {
        json_t *list = json_object_get(status, "conditions"), *item;
        size_t i;

        json_array_foreach(list, i, item)
                if (streq(get_node_text(item, "type"), type))
                        return item;
        return NULL;
}

/* The patch of one condition, which contains only the heartbeat if nothing else differs. */
static json_t *diff_condition(json_t *before, const NodeStatus *status, unsigned condition,
                              uint64_t now, bool *changed) {
        uint64_t since = node_reported_condition_since(status, condition);
        cleanup_json json_t *wanted =
                node_condition_to_json(status, condition, since > 0 ? since : now, now);
        json_t *diff;

        if (before && streq(get_node_text(before, "status"), get_node_text(wanted, "status")))
                (void) json_object_set(wanted, "lastTransitionTime",
                                       json_object_get(before, "lastTransitionTime"));
        diff = diff_map(before, wanted, false);
        (void) json_object_del(diff, "lastHeartbeatTime");
        *changed |= json_object_size(diff) > 0;
        (void) json_object_set(diff, "lastHeartbeatTime",
                               json_object_get(wanted, "lastHeartbeatTime"));
        (void) json_object_set(diff, "type", json_object_get(wanted, "type"));
        return diff;
}

static void add_condition_changes(json_t *patch, const json_t *before, const NodeStatus *status,
                                  uint64_t now, bool is_wanted) {
        json_t *list = json_array(), *order = json_array();
        bool changed = is_wanted;

        for (unsigned i = 0; i < N_NODE_REPORTED_CONDITIONS; i++) {
                const char *type = node_reported_condition_name(i);
                json_t *known = find_node_condition(before, type);

                if (!node_has_reported_condition(status, i) && !known)
                        continue; /* the usual case */
                (void) json_array_append_new(list, diff_condition(known, status, i, now, &changed));
                (void) json_array_append_new(order, json_pack("{s:s}", "type", type));
        }
        if (changed) {
                (void) json_object_set(patch, "$setElementOrder/conditions", order);
                (void) json_object_set(patch, "conditions", list);
        }
        json_decref(list);
        json_decref(order);
}

/* The server merges addresses by type, and there may be two of the same type, so they are
 * replaced. */
static void add_address_changes(json_t *patch, const json_t *before, json_t *wanted) {
        json_t *list;

        if (json_equal(json_object_get(before, "addresses"), wanted))
                return;
        list = json_copy(wanted);
        (void) json_array_append_new(list, json_pack("{s:s}", "$patch", "replace"));
        (void) json_object_set_new(patch, "addresses", list);
}

/* Lists and objects that are replaced as a whole; an empty one equals an absent one. */
static void add_replaced_value(json_t *patch, const json_t *before, const json_t *wanted,
                               const char *key) {
        json_t *old = json_object_get(before, key), *new = json_object_get(wanted, key);

        if (json_equal(old, new) || (!old && json_array_size(new) + json_object_size(new) == 0))
                return;
        (void) json_object_set_new(patch, key, new ? json_incref(new) : json_null());
}

/* Servers show port 0 if there is none. */
static void add_port_change(json_t *patch, const json_t *before, unsigned port) {
        const json_t *endpoint =
                json_object_get(json_object_get(before, "daemonEndpoints"), "kubeletEndpoint");

        if (json_integer_value(json_object_get(endpoint, "Port")) != port)
                (void) json_object_set_new(
                        patch, "daemonEndpoints",
                        json_pack("{s:{s:i}}", "kubeletEndpoint", "Port", (int) port));
}

static json_t *diff_node_status(const json_t *before, const NodeStatus *status, uint64_t now,
                                bool heartbeat) {
        static const char *const maps[] = { "capacity", "allocatable", "nodeInfo" };
        cleanup_json json_t *wanted = node_status_to_json(status);
        json_t *patch = json_object();

        for (size_t i = 0; i < N_ELEMENTS(maps); i++)
                set_if_not_empty(patch, maps[i],
                                 diff_map(json_object_get(before, maps[i]),
                                          json_object_get(wanted, maps[i]), i < 2));
        add_address_changes(patch, before, json_object_get(wanted, "addresses"));
        add_replaced_value(patch, before, wanted, "images");
        add_replaced_value(patch, before, wanted, "runtimeHandlers");
        add_replaced_value(patch, before, wanted, "volumesInUse");
        add_replaced_value(patch, before, wanted, "declaredFeatures");
        add_replaced_value(patch, before, wanted, "features");
        add_port_change(patch, before, status->port);
        add_condition_changes(patch, before, status, now, heartbeat || json_object_size(patch) > 0);
        return patch;
}

int node_object_patch(const json_t *known, const NodeLabelsTaints *own, const NodeStatus *status,
                      uint64_t now, bool heartbeat, char **ret_patch) {
        cleanup_json json_t *patch = json_object();
        char *text;

        if (!json_is_object(json_object_get(known, "metadata")))
                return -EBADMSG;
        set_if_not_empty(
                patch, "status",
                diff_node_status(json_object_get(known, "status"), status, now, heartbeat));
        if (own)
                set_if_not_empty(patch, "metadata", node_local_metadata_patch(known, own));
        if (json_object_size(patch) == 0)
                return 0;
        text = json_to_text(patch, JSON_COMPACT);
        if (!text)
                return -ENOMEM;
        *ret_patch = text;
        return 1;
}

/* Reading */

int node_object_parse(const json_t *node, NodeLabelsTaints *ret_external, char **ret_uid,
                      char **ret_version) {
        cleanup_with(node_labels_taints_done) NodeLabelsTaints external = { 0 };
        cleanup_free char *uid = NULL, *version = NULL;
        const json_t *metadata = json_object_get(node, "metadata");
        int r = node_external_labels_parse(node, &external);

        if (r < 0)
                return r;
        r = json_copy_string(metadata, "name", &external.name);
        if (r < 0)
                return r;
        r = json_copy_string(metadata, "uid", &uid);
        if (r < 0)
                return r;
        r = json_copy_string(metadata, "resourceVersion", &version);
        if (r < 0)
                return r;
        if (!external.name || !uid || !version)
                return -EBADMSG;
        *ret_external = external;
        external = (NodeLabelsTaints){ 0 };
        *ret_uid = TAKE_PTR(uid);
        *ret_version = TAKE_PTR(version);
        return 0;
}
