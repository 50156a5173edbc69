/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/node-api/kubernetes/metrics-objects.h"

#include "common/cleanup.h"
#include "common/json-text.h"
#include "common/text.h"

/* As metrics-server prints it: nanocores, and kibibytes unless the kernel does not count them.
 * NULL: unknown. */
static json_t *format_usage(const json_t *measured) {
        const json_t *cores = json_at(measured, "cpu", "usageNanoCores");
        const json_t *bytes = json_at(measured, "memory", "workingSetBytes");
        json_t *usage;

        if (!json_is_integer(cores))
                return NULL;
        usage = json_pack("{s:o}", "cpu",
                          json_sprintf("%" JSON_INTEGER_FORMAT "n", json_integer_value(cores)));
        if (json_is_integer(bytes))
                (void) json_object_set_new(usage, "memory",
                                           json_sprintf("%" JSON_INTEGER_FORMAT "Ki",
                                                        json_integer_value(bytes) / 1024));
        return usage;
}

/* Rates are averages since the previous request of the summary, or since the start. */
static json_t *format_metrics(const char *namespace, const char *name, const char *time) {
        return json_pack("{s:{s:s*, s:s, s:s*}, s:s*, s:s}", "metadata", "namespace", namespace,
                         "name", name, "creationTimestamp", time, "timestamp", time, "window",
                         "15s");
}

static json_t *list_container_usages(const json_t *pod) {
        json_t *list = json_array();
        size_t i;
        const json_t *container;

        json_array_foreach(json_object_get(pod, "containers"), i, container) {
                json_t *usage = format_usage(container);

                if (usage)
                        (void) json_array_append_new(list,
                                                     json_pack("{s:s, s:o}", "name",
                                                               strna(json_text(container, "name")),
                                                               "usage", usage));
        }
        return list;
}

json_t *pod_metrics_of_summary(const json_t *summary) {
        json_t *list = json_array();
        size_t i;
        const json_t *pod;

        json_array_foreach(json_object_get(summary, "pods"), i, pod) {
                cleanup_json json_t *containers = list_container_usages(pod);
                json_t *metrics;

                if (json_array_size(containers) == 0)
                        continue;
                metrics = format_metrics(json_text(pod, "podRef", "namespace"),
                                         strna(json_text(pod, "podRef", "name")),
                                         json_text(pod, "cpu", "time"));
                (void) json_object_set(metrics, "containers", containers);
                (void) json_array_append_new(list, metrics);
        }
        return list;
}

json_t *node_metrics_of_summary(const json_t *summary) {
        const json_t *node = json_object_get(summary, "node");
        json_t *list = json_array(), *usage = format_usage(node), *metrics;

        if (!usage)
                return list;
        metrics = format_metrics(NULL, strna(json_text(node, "nodeName")),
                                 json_text(node, "cpu", "time"));
        (void) json_object_set_new(metrics, "usage", usage);
        (void) json_array_append_new(list, metrics);
        return list;
}

/* ---- labels ---- */

static char *object_place(const json_t *object) {
        return text_format("%s/%s", strna(json_text(object, "metadata", "namespace")),
                           strna(json_text(object, "metadata", "name")));
}

json_t *list_labels(const json_t *objects) {
        json_t *labels = json_object();
        size_t i;
        const json_t *object;

        json_array_foreach(objects, i, object) {
                cleanup_free char *place = object_place(object);
                json_t *of_object = json_at(object, "metadata", "labels");

                if (place && of_object)
                        (void) json_object_set(labels, place, of_object);
        }
        return labels;
}

void set_labels(const json_t *metrics, const json_t *labels) {
        size_t i;
        json_t *object;

        json_array_foreach(metrics, i, object) {
                cleanup_free char *place = object_place(object);
                json_t *found = place ? json_object_get(labels, place) : NULL;

                if (found)
                        (void) json_object_set(json_object_get(object, "metadata"), "labels",
                                               found);
        }
}
