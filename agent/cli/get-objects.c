/* SPDX-License-Identifier: Apache-2.0 */
/* `mainstay get configmaps`, secrets, priorityclasses and runtimeclasses. */

#include "agent/cli/command-get.h"

#include "agent/cli/agent-client.h"
#include "agent/cli/words.h"
#include "agent/model/system-class.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/text.h"

/* get configmaps, secrets, priorityclasses, runtimeclasses: objects of manifests. The agent never
 * sends values of Secrets, only keys and lengths. */

static const char *format_created(const json_t *object, char age[DURATION_SIZE]) {
        return format_age(age, json_text(object, "metadata", "creationTimestamp"),
                          now_realtime_usec());
}

static size_t count_values(const json_t *object) {
        return json_object_size(json_object_get(object, "data")) +
               json_object_size(json_object_get(object, "binaryData"));
}

static void write_config_map(const json_t *object, const char *age, FILE *out) {
        fprintf(out, "%zu\t%s\n", count_values(object), age);
}

static void write_secret(const json_t *object, const char *age, FILE *out) {
        fprintf(out, "%s\t%zu\t%s\n", strna(json_text(object, "type")), count_values(object), age);
}

static void write_priority_class(const json_t *object, const char *age, FILE *out) {
        const char *policy = json_text(object, "preemptionPolicy");

        fprintf(out, "%lld\t%s\t%s\t%s\n",
                (long long) json_integer_value(json_object_get(object, "value")),
                json_is_true(json_object_get(object, "globalDefault")) ? "true" : "false", age,
                policy ? policy : "PreemptLowerPriority");
}

static void write_runtime_class(const json_t *object, const char *age, FILE *out) {
        fprintf(out, "%s\t%s\n", strna(json_text(object, "handler")), age);
}

/* By resource: kubectl's names and columns. */
static const struct {
        const char *singular, *group; /* group with its leading dot */
        bool is_cluster_wide;
        const char *headings; /* after the name */
        void (*write)(const json_t *object, const char *age, FILE *out);
} kinds[N_API_RESOURCES] = {
        [API_RESOURCE_CONFIG_MAPS] = { "configmap", "", false, "DATA\tAGE", write_config_map },
        [API_RESOURCE_SECRETS] = { "secret", "", false, "TYPE\tDATA\tAGE", write_secret },
        [API_RESOURCE_PRIORITY_CLASSES] = { "priorityclass", ".scheduling.k8s.io", true,
                                            "VALUE\tGLOBAL-DEFAULT\tAGE\tPREEMPTIONPOLICY",
                                            write_priority_class },
        [API_RESOURCE_RUNTIME_CLASSES] = { "runtimeclass", ".node.k8s.io", true, "HANDLER\tAGE",
                                           write_runtime_class },
};

/* NULL: all, or cluster-scoped. */
static const char *request_namespace(const GetRequest *request) {
        return kinds[request->resource].is_cluster_wide ? NULL : request->namespace;
}

/* Those that no file has. */
static void append_built_in_classes(json_t *classes) {
        for (size_t i = 0; i < SYSTEM_CLASSES; i++) {
                const SystemClass *class = &system_classes[i];

                (void) json_array_append_new(
                        classes,
                        json_pack("{s:s, s:s, s:{s:s}, s:I, s:s}", "apiVersion",
                                  "scheduling.k8s.io/v1", "kind", "PriorityClass", "metadata",
                                  "name", class->name, "value", (json_int_t) class->value,
                                  "description", class->description));
        }
}

static int fetch_objects(const GetRequest *request, json_t **ret, Error *reterr) {
        cleanup_json json_t *list = NULL, *wanted = json_array();
        cleanup_free char *path = NULL;
        const char *of = request_namespace(request);
        size_t i;
        json_t *object, *items;
        int r;

        path = text_format("/%s", api_resource_name(request->resource));
        if (!path)
                return -ENOMEM;
        r = client_get_json(request->options->socket, path, &list, reterr);
        if (r < 0)
                return r;
        items = json_object_get(list, "items");
        if (request->resource == API_RESOURCE_PRIORITY_CLASSES)
                append_built_in_classes(items);
        json_array_foreach(items, i, object)
                if (object_is_named(object, request->names, request->n_names) &&
                    (!of || streq_ptr(json_text(object, "metadata", "namespace"), of)))
                        (void) json_array_append(wanted, object);
        *ret = json_incref(wanted);
        return 0;
}

static bool shows_namespace(const GetRequest *request) {
        return request->options->all_namespaces && !kinds[request->resource].is_cluster_wide;
}

static void write_object_row(const json_t *object, FILE *out, void *userdata) {
        const GetRequest *request = userdata;
        char age[DURATION_SIZE];

        if (shows_namespace(request))
                fprintf(out, "%s\t", strna(json_text(object, "metadata", "namespace")));
        fprintf(out, "%s\t", strna(json_text(object, "metadata", "name")));
        kinds[request->resource].write(object, format_created(object, age), out);
}

static int print_objects_table(const GetRequest *request, const json_t *objects) {
        Columns columns = COLUMNS_TABLE;
        GetRequest copy = *request;
        char headings[80] = "";

        if (!request->options->no_headers)
                (void) snprintf(headings, sizeof(headings), "%sNAME\t%s\n",
                                shows_namespace(request) ? "NAMESPACE\t" : "",
                                kinds[request->resource].headings);
        return print_rows(&columns, headings, objects, write_object_row, &copy);
}

static int print_objects_in_format(const GetRequest *request, json_t *objects) {
        char kind[64];

        switch (request->format) {
        case FORMAT_JSON:
        case FORMAT_YAML:
                return print_list(request->format, request->n_names == 1, objects);
        case FORMAT_NAME:
                (void) snprintf(kind, sizeof(kind), "%s%s", kinds[request->resource].singular,
                                kinds[request->resource].group);
                return print_object_names(kind, objects);
        default:
                return json_array_size(objects) > 0 ? print_objects_table(request, objects) : 0;
        }
}

static int check_object_names(const GetRequest *request, const json_t *objects, Error *reterr) {
        const char *missing = find_missing_object_name(objects, request->names, request->n_names);

        if (!missing)
                return 0;
        return error_setf(reterr, ENOENT, "%s%s \"%s\" not found",
                          api_resource_name(request->resource), kinds[request->resource].group,
                          missing);
}

int get_objects(const GetRequest *request) {
        cleanup_error Error error = ERROR_NULL;
        cleanup_json json_t *objects = NULL;
        int r;

        r = fetch_objects(request, &objects, &error);
        if (r < 0)
                return fail_with_error(r, &error);
        r = print_objects_in_format(request, objects);
        if (r < 0)
                return fail_with_error(r, &error);
        r = check_object_names(request, objects, &error);
        if (r < 0)
                return fail_with_error(r, &error);
        if (json_array_size(objects) == 0 && format_is_table(request->format))
                report_nothing_found(request_namespace(request));
        return STATUS_OK;
}
