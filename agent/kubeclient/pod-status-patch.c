/* SPDX-License-Identifier: Apache-2.0 */
/* Compares the reported status of a pod with the local one and builds the strategic merge patch. */

#include "agent/kubeclient/pod-status-patch.h"

#include "agent/model/status.h"
#include "common/cleanup.h"
#include "common/json-text.h"

#include <string.h>

/* The fields that only the node's agent writes. The QoS class is set by the server when the pod is
 * created, and is immutable. */
static const char *const agent_status_fields[] = {
        "allocatedResources",
        "containerStatuses",
        "ephemeralContainerStatuses",
        "hostIP",
        "hostIPs",
        "initContainerStatuses",
        "message",
        "observedGeneration",
        "phase",
        "podIP",
        "podIPs",
        "reason",
        "resize",
        "resources",
        "startTime",
};

static const char transition_time[] = "lastTransitionTime";

static bool is_json_empty(json_t *value) {
        return !value || json_is_null(value) ||
               (json_is_string(value) && json_string_length(value) == 0) ||
               (json_is_array(value) && json_array_size(value) == 0) ||
               (json_is_object(value) && json_object_size(value) == 0);
}

static bool is_json_same(json_t *a, json_t *b);

/* Whether each field of 'a' is in 'b'. */
static bool is_json_subset(json_t *a, json_t *b) {
        const char *key;
        json_t *value;

        json_object_foreach(a, key, value) {
                if (!is_json_same(value, json_object_get(b, key)))
                        return false;
        }
        return true;
}

/* As in the API, an empty field and an absent one are equal. */
static bool is_json_same(json_t *a, json_t *b) {
        if (is_json_empty(a) || is_json_empty(b))
                return is_json_empty(a) && is_json_empty(b);
        if (json_is_object(a) && json_is_object(b))
                return is_json_subset(a, b) && is_json_subset(b, a);
        if (!json_is_array(a) || !json_is_array(b))
                return json_equal(a, b);
        if (json_array_size(a) != json_array_size(b))
                return false;
        for (size_t i = 0; i < json_array_size(a); i++)
                if (!is_json_same(json_array_get(a, i), json_array_get(b, i)))
                        return false;
        return true;
}

static json_t *find_pod_condition(json_t *conditions, const char *type) {
        size_t i;
        json_t *condition;

        json_array_foreach(conditions, i, condition) {
                const char *other = json_text(condition, "type");

                if (other && streq(other, type))
                        return condition;
        }
        return NULL;
}

/* As in the kubelet, the time of a condition is kept until its status changes, because a restarted
 * agent computes another time. Both are RFC 3339 in UTC, which sorts as text. */
static int keep_transition_times(json_t *reported, json_t *ours) {
        size_t i;
        json_t *condition;

        json_array_foreach(ours, i, condition) {
                json_t *other = find_pod_condition(reported, strna(json_text(condition, "type")));
                json_t *time = json_object_get(other, transition_time);
                const char *kept = json_string_value(time);
                const char *computed = json_text(condition, transition_time);

                if (kept && computed && strcmp(computed, kept) < 0 &&
                    json_equal(json_object_get(condition, "status"),
                               json_object_get(other, "status")) &&
                    json_object_set(condition, transition_time, time) < 0)
                        return -ENOMEM;
        }
        return 0;
}

/* The patch contains null for each optional field that is reported but not set. */
static json_t *build_condition_patch(json_t *reported, json_t *ours) {
        static const char *const optional[] = { "message", "reason" };
        json_t *patch = json_copy(ours);

        for (size_t i = 0; patch && i < N_ELEMENTS(optional); i++)
                if (!json_object_get(ours, optional[i]) && json_object_get(reported, optional[i]) &&
                    json_object_set_new(patch, optional[i], json_null()) < 0) {
                        json_decref(patch);
                        return NULL;
                }
        return patch;
}

/* lastProbeTime is not compared. */
static bool is_condition_reported(json_t *reported, json_t *ours) {
        static const char *const keys[] = { "status", "reason", "message", transition_time,
                                            "observedGeneration" };

        for (size_t i = 0; i < N_ELEMENTS(keys); i++)
                if (!is_json_same(json_object_get(reported, keys[i]),
                                  json_object_get(ours, keys[i])))
                        return false;
        return reported;
}

/* Conditions that only a node sets and removes. */
static bool is_condition_withdrawn(const char *type, json_t *ours) {
        return (streq(type, pod_condition_names[CONDITION_RESIZE_IN_PROGRESS]) ||
                streq(type, pod_condition_names[CONDITION_EDIT_PENDING])) &&
               !find_pod_condition(ours, type);
}

static int add_withdrawn_conditions(json_t *changed, json_t *reported, json_t *ours) {
        json_t *condition;
        size_t i;

        json_array_foreach(reported, i, condition) {
                const char *type = json_text(condition, "type");

                if (type && is_condition_withdrawn(type, ours) &&
                    json_array_append_new(
                            changed, json_pack("{s:s, s:s}", "$patch", "delete", "type", type)) < 0)
                        return -ENOMEM;
        }
        return 0;
}

static int add_changed_conditions(json_t *patch, json_t *reported, json_t *ours) {
        cleanup_json json_t *changed = json_array();
        size_t i;
        json_t *condition;

        if (!changed)
                return -ENOMEM;
        json_array_foreach(ours, i, condition) {
                const char *type = json_text(condition, "type");
                json_t *other = type ? find_pod_condition(reported, type) : NULL;

                if (type && !is_condition_reported(other, condition) &&
                    json_array_append_new(changed, build_condition_patch(other, condition)) < 0)
                        return -ENOMEM;
        }
        if (add_withdrawn_conditions(changed, reported, ours) < 0)
                return -ENOMEM;
        if (json_array_size(changed) == 0)
                return 0;
        return json_object_set(patch, "conditions", changed) < 0 ? -ENOMEM : 0;
}

static bool is_address_list(const char *key) {
        return streq(key, "hostIPs") || streq(key, "podIPs");
}

static bool has_address(json_t *list, json_t *address) {
        size_t i;
        json_t *item;

        json_array_foreach(list, i, item) {
                if (json_equal(json_object_get(item, "ip"), json_object_get(address, "ip")))
                        return true;
        }
        return false;
}

/* The server merges lists of addresses, so each removed one needs a delete directive. */
static json_t *build_addresses_patch(json_t *reported, json_t *ours) {
        json_t *patch = json_copy(ours);
        size_t i;
        json_t *item;

        json_array_foreach(reported, i, item) {
                if (patch && !has_address(ours, item) &&
                    json_array_append_new(patch, json_pack("{s:s, s:O*}", "$patch", "delete", "ip",
                                                           json_object_get(item, "ip"))) < 0) {
                        json_decref(patch);
                        patch = NULL;
                }
        }
        return patch;
}

static json_t *build_value_patch(const char *key, json_t *reported, json_t *ours) {
        if (is_json_empty(ours))
                return json_null();
        return is_address_list(key) ? build_addresses_patch(reported, ours) : json_incref(ours);
}

static int add_changed_fields(json_t *patch, json_t *reported, json_t *ours) {
        for (size_t i = 0; i < N_ELEMENTS(agent_status_fields); i++) {
                json_t *value = json_object_get(ours, agent_status_fields[i]);
                json_t *other = json_object_get(reported, agent_status_fields[i]);

                if (!is_json_same(other, value) &&
                    json_object_set_new(patch, agent_status_fields[i],
                                        build_value_patch(agent_status_fields[i], other, value)) <
                            0)
                        return -ENOMEM;
        }
        return 0;
}

static int format_status_patch(const char *uid, json_t *status, char **ret) {
        cleanup_json json_t *patch =
                json_pack("{s:{s:s}, s:O}", "metadata", "uid", uid, "status", status);

        *ret = patch ? json_to_text(patch, JSON_COMPACT) : NULL;
        return *ret ? 1 : -ENOMEM;
}

int kube_pod_status_patch(const char *uid, const char *reported, json_t *ours, char **ret_patch) {
        cleanup_json json_t *theirs = reported ? json_loads(reported, 0, NULL) : json_object();
        cleanup_json json_t *patch = json_object();
        int r;

        if (!patch)
                return -ENOMEM;
        if (!json_is_object(theirs) || !json_is_object(ours))
                return -EBADMSG;
        r = keep_transition_times(json_object_get(theirs, "conditions"),
                                  json_object_get(ours, "conditions"));
        if (r < 0)
                return r;
        r = add_changed_fields(patch, theirs, ours);
        if (r < 0)
                return r;
        r = add_changed_conditions(patch, json_object_get(theirs, "conditions"),
                                   json_object_get(ours, "conditions"));
        if (r < 0 || json_object_size(patch) == 0)
                return r;
        return format_status_patch(uid, patch, ret_patch);
}
