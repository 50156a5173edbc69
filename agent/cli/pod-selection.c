/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/cli/pod-selection.h"

#include "agent/cli/agent-client.h"
#include "agent/cli/output.h"
#include "agent/cli/resources.h"
#include "agent/cli/words.h"
#include "common/cleanup.h"
#include "common/json-text.h"

#include <stdio.h>

int pod_filter_init(PodFilter *filter, const Options *options, char *const *names, size_t n_names,
                    Error *reterr) {
        *filter = (PodFilter){
                .namespace = options->all_namespaces ? NULL
                             : options->namespace    ? options->namespace
                                                     : "default",
                .names = names,
                .n_names = n_names,
        };
        return selector_parse(options->selector, &filter->selector, reterr);
}

void pod_filter_done(PodFilter *filter) {
        selector_done(&filter->selector);
}

bool pod_is_called(const json_t *pod, const char *name) {
        const char *full = strna(json_text(pod, "metadata", "name"));
        const char *node = strna(json_text(pod, "spec", "nodeName"));
        size_t length;

        name = strip_resource_prefix(name);
        length = strlen(name);
        if (streq(full, name))
                return true;
        return node[0] && strncmp(full, name, length) == 0 && full[length] == '-' &&
               strcasecmp(full + length + 1, node) == 0;
}

static bool is_pod_named(const PodFilter *filter, const json_t *pod) {
        for (size_t i = 0; i < filter->n_names; i++)
                if (pod_is_called(pod, filter->names[i]))
                        return true;
        return filter->n_names == 0;
}

bool pod_json_is_ready_or_done(const json_t *pod) {
        json_t *conditions = json_at(pod, "status", "conditions"), *condition;
        size_t i;

        json_array_foreach(conditions, i, condition)
                if (streq_ptr(json_text(condition, "type"), "Ready") &&
                    streq_ptr(json_text(condition, "status"), "True"))
                        return true;
        return streq_ptr(json_text(pod, "status", "phase"), "Succeeded");
}

bool pod_filter_matches(const PodFilter *filter, const json_t *pod) {
        if (filter->namespace &&
            !streq_ptr(json_text(pod, "metadata", "namespace"), filter->namespace))
                return false;
        return is_pod_named(filter, pod) &&
               selector_matches(&filter->selector, json_at(pod, "metadata", "labels"));
}

static int compare_pods_by_name(const void *a, const void *b) {
        const json_t *x = *(json_t *const *) a, *y = *(json_t *const *) b;
        int order = strcmp(strna(json_text(x, "metadata", "namespace")),
                           strna(json_text(y, "metadata", "namespace")));

        return order ? order
                     : strcmp(strna(json_text(x, "metadata", "name")),
                              strna(json_text(y, "metadata", "name")));
}

/* A new array with the same pods, sorted. */
static json_t *sort_pods_by_name(const json_t *pods) {
        size_t n = json_array_size(pods);
        cleanup_free json_t **items = calloc(n + 1, sizeof(json_t *));
        json_t *sorted = json_array();

        if (!items)
                return sorted;
        for (size_t i = 0; i < n; i++)
                items[i] = json_array_get(pods, i);
        if (n > 1)
                qsort(items, n, sizeof(*items), compare_pods_by_name);
        for (size_t i = 0; i < n; i++)
                (void) json_array_append(sorted, items[i]);
        return sorted;
}

int pods_fetch(const char *socket, const PodFilter *filter, json_t **ret, Error *reterr) {
        cleanup_json json_t *list = NULL, *matching = json_array();
        size_t i;
        json_t *pod;
        int r;

        r = client_get_json(socket, "/pods", &list, reterr);
        if (r < 0)
                return r;
        json_array_foreach(json_object_get(list, "items"), i, pod) {
                if (!pod_filter_matches(filter, pod))
                        continue;
                (void) json_object_set_new(pod, "apiVersion", json_string("v1"));
                (void) json_object_set_new(pod, "kind", json_string("Pod"));
                (void) json_array_append(matching, pod);
        }
        *ret = sort_pods_by_name(matching);
        return 0;
}

const char *pods_missing_name(const PodFilter *filter, const json_t *pods) {
        for (size_t n = 0; n < filter->n_names; n++) {
                bool found = false;
                size_t i;
                json_t *pod;

                json_array_foreach(pods, i, pod)
                        found = found || pod_is_called(pod, filter->names[n]);
                if (!found)
                        return filter->names[n];
        }
        return NULL;
}

int report_missing_pods(const PodFilter *filter, const json_t *pods) {
        cleanup_error Error error = ERROR_NULL;
        const char *missing = pods_missing_name(filter, pods);

        if (missing)
                return fail_with_error(error_setf(&error, ENOENT, "pods \"%s\" not found", missing),
                                       &error);
        if (json_array_size(pods) == 0)
                report_nothing_found(filter->namespace);
        return STATUS_OK;
}

static void print_manifest(const json_t *manifest) {
        const char *error = json_text(manifest, "error");
        size_t i;
        json_t *warning;

        if (error)
                print_line(stderr, "error: %s", error);
        json_array_foreach(json_object_get(manifest, "warnings"), i, warning)
                print_line(stderr, "warning: %s", strna(json_string_value(warning)));
}

void print_manifest_errors(const char *socket) {
        cleanup_json json_t *report = NULL;
        cleanup_error Error error = ERROR_NULL;
        const char *last_error, *warning;
        size_t i;
        json_t *item;
        int r;

        fflush(stdout);
        r = client_get_json(socket, "/manifests", &report, &error);
        if (r < 0) {
                print_line(stderr, "warning: cannot get the status of manifests: %s",
                           error_message(&error, r));
                return;
        }
        last_error = json_text(report, "error");
        if (last_error)
                print_line(stderr, "error: %s", last_error);
        warning = json_text(report, "warning");
        if (warning)
                print_line(stderr, "warning: %s", warning);
        json_array_foreach(json_object_get(report, "items"), i, item)
                print_manifest(item);
        json_array_foreach(json_object_get(report, "archives"), i, item)
                print_line(stderr, "error: %s: %s", strna(json_text(item, "archive")),
                           strna(json_text(item, "message")));
}
