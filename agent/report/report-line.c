/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/report/report-line.h"

#include "agent/model/node-status.h"
#include "agent/model/own-keys.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/json-text.h"
#include "common/text.h"

#include <errno.h>
#include <stdio.h>

#define OWN_CONDITION NODE_CONDITION_PREFIX "ReportFailed"

static const char *get_line_text(const json_t *object, const char *key) {
        return json_text(object, key);
}

/* Names and images of a list of containers. */
static json_t *reduce_containers(const json_t *containers) {
        json_t *reduced = json_is_array(containers) ? json_array() : NULL;
        const json_t *container;
        size_t i;

        json_array_foreach(containers, i, container)
                (void) json_array_append_new(
                        reduced, json_pack("{s:s*, s:s*}", "name", get_line_text(container, "name"),
                                           "image", get_line_text(container, "image")));
        return reduced;
}

static json_t *reduce_spec(const json_t *spec, const char *node_name) {
        static const char *const lists[] = { "initContainers", "containers",
                                             "ephemeralContainers" };
        json_t *reduced = json_pack("{s:s*}", "nodeName", node_name);

        for (size_t i = 0; reduced && i < N_ELEMENTS(lists); i++) {
                json_t *list = reduce_containers(json_object_get(spec, lists[i]));

                if (list)
                        (void) json_object_set_new(reduced, lists[i], list);
        }
        return reduced;
}

static json_t *reduce_metadata(const json_t *pod) {
        static const char *const kept[] = { "name",
                                            "namespace",
                                            "uid",
                                            "creationTimestamp",
                                            "labels",
                                            "ownerReferences",
                                            "deletionTimestamp",
                                            "deletionGracePeriodSeconds" };
        const json_t *metadata = json_object_get(pod, "metadata");
        json_t *reduced = json_object();

        for (size_t i = 0; reduced && i < N_ELEMENTS(kept); i++) {
                json_t *value = json_object_get(metadata, kept[i]);

                if (value)
                        (void) json_object_set(reduced, kept[i], value);
        }
        if (reduced)
                (void) json_object_set_new(reduced, "annotations", own_pod_json_annotations(pod));
        return reduced;
}

char *report_line_of_pod(const char *json, const char *node_name) {
        cleanup_json json_t *pod = json_loads(json, 0, NULL);
        cleanup_json json_t *line = NULL;

        if (!json_is_object(pod))
                return NULL;
        line = json_pack("{s:s, s:s, s:o, s:o, s:O*}", "apiVersion", "v1", "kind", "Pod",
                         "metadata", reduce_metadata(pod), "spec",
                         reduce_spec(json_object_get(pod, "spec"), node_name), "status",
                         json_object_get(pod, "status"));
        return line ? json_to_text(line, JSON_COMPACT) : NULL;
}

char *report_line_of_gone_pod(const Pod *pod, const char *node_name, uint64_t realtime_usec) {
        char time[RFC3339_SIZE];
        cleanup_json json_t *line =
                json_pack("{s:s, s:s, s:{s:s, s:s, s:s, s:s, s:i}, s:{s:s*}}", "apiVersion", "v1",
                          "kind", "Pod", "metadata", "name", strna(pod->metadata.name), "namespace",
                          strna(pod->metadata.namespace), "uid", strna(pod->metadata.uid),
                          "deletionTimestamp", format_rfc3339(time, realtime_usec),
                          "deletionGracePeriodSeconds", 0, "spec", "nodeName", node_name);

        return line ? json_to_text(line, JSON_COMPACT) : NULL;
}

char *report_line_of_node(const char *json) {
        cleanup_json json_t *node = json_loads(json, 0, NULL);
        json_t *conditions = json_object_get(json_object_get(node, "status"), "conditions");

        for (size_t i = json_array_size(conditions); i > 0; i--) {
                json_t *condition = json_array_get(conditions, i - 1);

                (void) json_object_del(condition, "lastHeartbeatTime");
                if (streq_ptr(get_line_text(condition, "type"), OWN_CONDITION))
                        (void) json_array_remove(conditions, i - 1);
        }
        return json_is_object(node) ? json_to_text(node, JSON_COMPACT) : NULL;
}

/* The number at the end of an event's name restarts with each agent. */
int report_event_names(const char *json, char **ret_key, char **ret_uid) {
        cleanup_json json_t *event = json_loads(json, 0, NULL);
        const char *name = get_line_text(json_object_get(event, "metadata"), "name");
        const char *uid = get_line_text(json_object_get(event, "involvedObject"), "uid");
        const char *number = name ? strrchr(name, '.') : NULL;
        cleanup_free char *key = NULL;

        if (!number || !uid)
                return -EBADMSG;
        key = text_format("%s%s", strna(get_line_text(event, "firstTimestamp")), number);
        if (!key)
                return -ENOMEM;
        *ret_uid = strdup(uid);
        if (!*ret_uid)
                return -ENOMEM;
        *ret_key = TAKE_PTR(key);
        return 0;
}
