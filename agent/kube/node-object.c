/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/kube/node-object.h"

#include "agent/kube/json-text.h"
#include "agent/kube/node-json.h"
#include "agent/model/match.h"
#include "agent/model/pod.h"
#include "common/cleanup.h"

/* The labels that are kept as we have them, whoever changes them. All others are given once, when
 * the node is registered, and are then the administrators' to change. */
static const char *const kept_labels[] = {
        "kubernetes.io/hostname", "kubernetes.io/os",        "kubernetes.io/arch",
        "beta.kubernetes.io/os",  "beta.kubernetes.io/arch",
};

static const char *const allowed_labels[] = {
        "kubernetes.io/hostname",
        "kubernetes.io/os",
        "kubernetes.io/arch",
        "kubernetes.io/instance-type",
        "beta.kubernetes.io/os",
        "beta.kubernetes.io/arch",
        "beta.kubernetes.io/instance-type",
        "node.kubernetes.io/instance-type",
        "topology.kubernetes.io/region",
        "topology.kubernetes.io/zone",
        "failure-domain.beta.kubernetes.io/region",
        "failure-domain.beta.kubernetes.io/zone",
};

static bool ends_domain(const char *domain, size_t length, const char *end) {
        size_t n = strlen(end);

        return length >= n && strncmp(domain + length - n, end, n) == 0 &&
               (length == n || domain[length - n - 1] == '.');
}

bool node_label_is_ours(const char *key) {
        const char *slash = strchr(key, '/');
        size_t length = slash ? (size_t) (slash - key) : 0;

        for (size_t i = 0; i < N_ELEMENTS(allowed_labels); i++)
                if (streq(key, allowed_labels[i]))
                        return true;
        if (!slash || ends_domain(key, length, "kubelet.kubernetes.io") ||
            ends_domain(key, length, "node.kubernetes.io"))
                return true;
        return !ends_domain(key, length, "kubernetes.io") && !ends_domain(key, length, "k8s.io");
}

/* Registering */

static json_t *write_labels(const NodeFacts *facts) {
        json_t *labels = json_object();

        for (size_t i = 0; i < facts->labels.n; i++)
                if (node_label_is_ours(facts->labels.items[i].key))
                        (void) json_object_set_new(labels, facts->labels.items[i].key,
                                                   json_string(facts->labels.items[i].value));
        return labels;
}

static json_t *write_taints(const NodeFacts *facts) {
        json_t *list = json_array();

        for (size_t i = 0; i < facts->taints.n; i++) {
                const Taint *taint = &facts->taints.items[i];

                if (node_taint_is_of_condition(facts, taint))
                        continue; /* a cluster's controller keeps those, by the conditions */
                (void) json_array_append_new(
                        list, json_pack("{s:s, s:s*, s:s, s:s*}", "key", taint->key, "value",
                                        taint->value, "effect", taint_effect_names[taint->effect],
                                        "timeAdded", taint->time_added));
        }
        if (json_array_size(list) > 0)
                return list;
        json_decref(list);
        return NULL;
}

static json_t *write_conditions(const NodeStatus *status, uint64_t now) {
        json_t *list = json_array();

        for (unsigned i = 0; i < N_NODE_CLAIMS; i++) {
                uint64_t since = node_claim_since(status, i);

                (void) json_array_append_new(
                        list, node_json_condition(status, i, since > 0 ? since : now, now));
        }
        return list;
}

char *node_object_new(const NodeFacts *facts, const NodeStatus *status, uint64_t now) {
        json_t *body = node_json_status(status);
        cleanup_with(json_decrefp) json_t *json = NULL;

        if (!body)
                return NULL;
        (void) json_object_set_new(body, "conditions", write_conditions(status, now));
        json = json_pack("{s:s, s:s, s:{s:s, s:o}, s:{s:o*}, s:o}", "kind", "Node", "apiVersion",
                         "v1", "metadata", "name", facts->name, "labels", write_labels(facts),
                         "spec", "taints", write_taints(facts), "status", body);
        return json ? json_dumps(json, JSON_COMPACT) : NULL;
}

/* What is another than the server knows */

static const char *text_of(const json_t *object, const char *key) {
        const char *text = json_string_value(json_object_get(object, key));

        return text ? text : "";
}

static void set_if_any(json_t *object, const char *key, json_t *value) {
        if (value && json_object_size(value) + json_array_size(value) > 0)
                (void) json_object_set_new(object, key, value);
        else
                json_decref(value);
}

/* Keys with another value, and null for those that are not wanted any more. */
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

static json_t *diff_labels(const json_t *before, const NodeFacts *facts) {
        json_t *diff = json_object();

        for (size_t i = 0; i < N_ELEMENTS(kept_labels); i++) {
                const char *value = string_map_get(&facts->labels, kept_labels[i]);

                if (value && !streq(text_of(before, kept_labels[i]), value))
                        (void) json_object_set_new(diff, kept_labels[i], json_string(value));
        }
        return diff;
}

static json_t *find_condition(const json_t *status, const char *type) {
        json_t *list = json_object_get(status, "conditions"), *item;
        size_t i;

        json_array_foreach(list, i, item)
                if (streq(text_of(item, "type"), type))
                        return item;
        return NULL;
}

/* One condition's change; its heartbeat alone where nothing else is another. */
static json_t *diff_condition(json_t *before, const NodeStatus *status, unsigned claim,
                              uint64_t now, bool *changed) {
        uint64_t since = node_claim_since(status, claim);
        cleanup_with(json_decrefp) json_t *wanted =
                node_json_condition(status, claim, since > 0 ? since : now, now);
        json_t *diff;

        if (before && streq(text_of(before, "status"), text_of(wanted, "status")))
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

static void add_conditions(json_t *patch, const json_t *before, const NodeStatus *status,
                           uint64_t now, bool is_wanted) {
        json_t *list = json_array(), *order = json_array();
        bool changed = is_wanted;

        for (unsigned i = 0; i < N_NODE_CLAIMS; i++) {
                const char *type = node_claim_name(i);

                (void) json_array_append_new(list, diff_condition(find_condition(before, type),
                                                                  status, i, now, &changed));
                (void) json_array_append_new(order, json_pack("{s:s}", "type", type));
        }
        if (changed) {
                (void) json_object_set(patch, "$setElementOrder/conditions", order);
                (void) json_object_set(patch, "conditions", list);
        }
        json_decref(list);
        json_decref(order);
}

/* Addresses are merged by their type, of which there may be two: they are replaced. */
static void add_addresses(json_t *patch, const json_t *before, json_t *wanted) {
        json_t *list;

        if (json_equal(json_object_get(before, "addresses"), wanted))
                return;
        list = json_copy(wanted);
        (void) json_array_append_new(list, json_pack("{s:s}", "$patch", "replace"));
        (void) json_object_set_new(patch, "addresses", list);
}

/* Lists and objects that are exchanged as a whole; an empty one is the same as none. */
static void add_whole(json_t *patch, const json_t *before, const json_t *wanted, const char *key) {
        json_t *old = json_object_get(before, key), *new = json_object_get(wanted, key);

        if (json_equal(old, new) || (!old && json_array_size(new) == 0))
                return;
        (void) json_object_set(patch, key, new);
}

static json_t *diff_status(const json_t *before, const NodeStatus *status, uint64_t now,
                           bool heartbeat) {
        static const char *const maps[] = { "capacity", "allocatable", "nodeInfo" };
        cleanup_with(json_decrefp) json_t *wanted = node_json_status(status);
        json_t *patch = json_object();

        for (size_t i = 0; i < N_ELEMENTS(maps); i++)
                set_if_any(patch, maps[i],
                           diff_map(json_object_get(before, maps[i]),
                                    json_object_get(wanted, maps[i]), i < 2));
        add_addresses(patch, before, json_object_get(wanted, "addresses"));
        add_whole(patch, before, wanted, "images");
        add_whole(patch, before, wanted, "runtimeHandlers");
        if (json_object_get(wanted, "daemonEndpoints"))
                add_whole(patch, before, wanted, "daemonEndpoints");
        add_conditions(patch, before, status, now, heartbeat || json_object_size(patch) > 0);
        return patch;
}

int node_object_patch(const char *known, const NodeFacts *facts, const NodeStatus *status,
                      uint64_t now, bool heartbeat, char **ret_patch) {
        cleanup_with(json_decrefp) json_t *before = json_loads(known, 0, NULL);
        cleanup_with(json_decrefp) json_t *patch = json_object(), *labels = NULL;
        const json_t *metadata = json_object_get(before, "metadata");
        char *text;

        if (!json_is_object(metadata))
                return -EBADMSG;
        set_if_any(patch, "status",
                   diff_status(json_object_get(before, "status"), status, now, heartbeat));
        labels = diff_labels(json_object_get(metadata, "labels"), facts);
        if (json_object_size(labels) > 0)
                (void) json_object_set_new(patch, "metadata", json_pack("{s:O}", "labels", labels));
        if (json_object_size(patch) == 0)
                return 0;
        text = json_dumps(patch, JSON_COMPACT);
        if (!text)
                return -ENOMEM;
        *ret_patch = text;
        return 1;
}

/* Reading */

static int read_labels(json_t *labels, NodeFacts *facts) {
        const char *key;
        json_t *value;

        json_object_foreach(labels, key, value) {
                int r = json_is_string(value)
                                ? string_map_set(&facts->labels, key, json_string_value(value))
                                : 0;

                if (r < 0)
                        return r;
        }
        return 0;
}

static int read_taint(const json_t *json, Taint *taint) {
        const char *effect = text_of(json, "effect");
        int r = json_text_copy(json, "key", &taint->key);

        if (r >= 0)
                r = json_text_copy(json, "value", &taint->value);
        if (r >= 0)
                r = json_text_copy(json, "timeAdded", &taint->time_added);
        for (size_t i = 1; i < N_TAINT_EFFECTS; i++)
                if (streq(effect, taint_effect_names[i]))
                        taint->effect = (TaintEffect) i;
        return r;
}

static int read_taints(const json_t *list, NodeFacts *facts) {
        const json_t *item;
        size_t i;

        facts->taints.items = calloc(json_array_size(list) + 1, sizeof(Taint));
        if (!facts->taints.items)
                return -ENOMEM;
        json_array_foreach(list, i, item) {
                Taint *taint = &facts->taints.items[facts->taints.n++];
                int r = read_taint(item, taint);

                if (r < 0)
                        return r;
                /* Of an effect that we do not know we can say nothing. */
                if (!taint->key || taint->effect == TAINT_EFFECT_UNSET)
                        schema_done(&taint_schema, &facts->taints.items[--facts->taints.n]);
        }
        return 0;
}

static int read_facts(const json_t *node, NodeFacts *facts) {
        const json_t *metadata = json_object_get(node, "metadata");
        int r = json_text_copy(metadata, "name", &facts->name);

        if (r >= 0)
                r = read_labels(json_object_get(metadata, "labels"), facts);
        if (r >= 0)
                r = read_taints(json_object_get(json_object_get(node, "spec"), "taints"), facts);
        return r;
}

int node_object_read(const char *json, NodeFacts *ret_facts, char **ret_uid, char **ret_version) {
        cleanup_with(json_decrefp) json_t *node = json_loads(json, 0, NULL);
        cleanup_with(node_facts_done) NodeFacts facts = { 0 };
        cleanup_free char *uid = NULL, *version = NULL;
        const json_t *metadata = json_object_get(node, "metadata");
        int r = read_facts(node, &facts);

        if (r >= 0)
                r = json_text_copy(metadata, "uid", &uid);
        if (r >= 0)
                r = json_text_copy(metadata, "resourceVersion", &version);
        if (r < 0)
                return r;
        if (!facts.name || !uid || !version)
                return -EBADMSG;
        *ret_facts = facts;
        facts = (NodeFacts){ 0 };
        *ret_uid = TAKE_PTR(uid);
        *ret_version = TAKE_PTR(version);
        return 0;
}
