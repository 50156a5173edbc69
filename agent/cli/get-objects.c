/* SPDX-License-Identifier: Apache-2.0 */
/* `mainstay get configmaps`, secrets, priorityclasses and runtimeclasses. */

#include "agent/cli/agent-client.h"
#include "agent/cli/get-output.h"
#include "agent/model/system-class.h"
#include "common/cleanup.h"
#include "common/json-text.h"
#include "common/text.h"

/* get configmaps, secrets, priorityclasses, runtimeclasses: objects of manifests. The agent never
 * sends values of Secrets, only keys and lengths. */

static const GetKind kinds[N_API_RESOURCES] = {
        [API_RESOURCE_CONFIG_MAPS] = { .word = "configmap", .table = &config_map_table_kind },
        [API_RESOURCE_SECRETS] = { .word = "secret", .table = &secret_table_kind },
        [API_RESOURCE_PRIORITY_CLASSES] = { .word = "priorityclass.scheduling.k8s.io",
                                            .is_cluster_wide = true,
                                            .table = &priority_class_table_kind },
        [API_RESOURCE_RUNTIME_CLASSES] = { .word = "runtimeclass.node.k8s.io",
                                           .is_cluster_wide = true,
                                           .table = &runtime_class_table_kind },
};

/* NULL: all, or cluster-scoped. */
static const char *request_namespace(const GetRequest *request) {
        return kinds[request->resource].is_cluster_wide ? NULL : request->namespace;
}

/* Classes that are in no file. */
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

static int check_object_names(const GetRequest *request, const json_t *objects, Error *reterr) {
        const char *missing = find_missing_object_name(objects, request->names, request->n_names);

        if (!missing)
                return 0;
        return error_setf(reterr, ENOENT, "%s%s \"%s\" not found",
                          api_resource_name(request->resource),
                          strna(strchr(kinds[request->resource].word, '.')), missing);
}

int get_objects(const GetRequest *request) {
        cleanup_with(get_output_done) GetOutput output = { .request = request,
                                                           .kind = &kinds[request->resource],
                                                           .columns = COLUMNS_TABLE };
        cleanup_error Error error = ERROR_NULL;
        cleanup_json json_t *objects = NULL;
        int r;

        r = fetch_objects(request, &objects, &error);
        if (r < 0)
                return fail_with_error(r, &error);
        r = get_output_list(&output, objects);
        if (r < 0)
                return fail_with_error(r, &error);
        r = check_object_names(request, objects, &error);
        if (r < 0)
                return fail_with_error(r, &error);
        if (json_array_size(objects) == 0 && format_is_table(request->format))
                report_nothing_found(request_namespace(request));
        return STATUS_OK;
}
