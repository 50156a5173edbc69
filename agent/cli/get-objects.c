/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/cli/get.h"

#include "agent/cli/client.h"
#include "agent/cli/words.h"
#include "common/cleanup.h"
#include "common/clock.h"

/* get configmaps, get secrets: what the manifests have for pods to refer to. Of Secrets the agent
 * tells the keys and no value. */

static bool is_called(const GetRequest *request, const json_t *object) {
        const char *name = strna(json_text(object, "metadata", "name"));

        for (size_t i = 0; i < request->n_names; i++)
                if (streq(resource_bare_name(request->names[i]), name))
                        return true;
        return request->n_names == 0;
}

static int fetch(const GetRequest *request, json_t **ret, Error *reterr) {
        cleanup_json json_t *list = NULL, *wanted = json_array();
        cleanup_free char *path = NULL;
        size_t i;
        json_t *object;
        int r;

        if (asprintf(&path, "/%s", resource_name(request->resource)) < 0) {
                path = NULL;
                return -ENOMEM;
        }
        r = client_get_json(request->options->socket, path, &list, reterr);
        if (r < 0)
                return r;
        json_array_foreach(json_object_get(list, "items"), i, object) {
                const char *namespace = json_text(object, "metadata", "namespace");

                if (is_called(request, object) &&
                    (!request->namespace || streq_ptr(namespace, request->namespace)))
                        (void) json_array_append(wanted, object);
        }
        *ret = json_incref(wanted);
        return 0;
}

static void write_row(const json_t *object, FILE *out, void *userdata) {
        const GetRequest *request = userdata;
        char age[DURATION_SIZE];

        if (request->options->all_namespaces)
                fprintf(out, "%s\t", strna(json_text(object, "metadata", "namespace")));
        fprintf(out, "%s\t", strna(json_text(object, "metadata", "name")));
        if (request->resource == RESOURCE_SECRETS)
                fprintf(out, "%s\t", strna(json_text(object, "type")));
        fprintf(out, "%zu\t%s\n",
                json_object_size(json_object_get(object, "data")) +
                        json_object_size(json_object_get(object, "binaryData")),
                format_age(age, json_text(object, "metadata", "creationTimestamp"),
                           now_realtime_usec()));
}

static int print_table(const GetRequest *request, const json_t *objects) {
        Columns columns = COLUMNS_TABLE;
        GetRequest copy = *request;
        char headings[64] = "";

        if (!request->options->no_headers)
                (void) snprintf(headings, sizeof(headings),
                                "%sNAME\t%sDATA\t"
                                "AGE\n",
                                request->options->all_namespaces ? "NAMESPACE\t" : "",
                                request->resource == RESOURCE_SECRETS ? "TYPE\t" : "");
        return print_rows(&columns, headings, objects, write_row, &copy);
}

static int print_objects(const GetRequest *request, json_t *objects) {
        switch (request->format) {
        case FORMAT_JSON:
        case FORMAT_YAML:
                return print_list(request->format, request->n_names == 1, objects);
        case FORMAT_NAME:
                return print_names(request->resource == RESOURCE_SECRETS ? "secret" : "configmap",
                                   objects);
        default:
                return json_array_size(objects) > 0 ? print_table(request, objects) : 0;
        }
}

static int missing_name(const GetRequest *request, const json_t *objects, Error *reterr) {
        for (size_t n = 0; n < request->n_names; n++) {
                const char *name = resource_bare_name(request->names[n]);
                bool found = false;
                size_t i;
                json_t *object;

                json_array_foreach(objects, i, object)
                        found = found || streq_ptr(json_text(object, "metadata", "name"), name);
                if (!found)
                        return error_setf(reterr, ENOENT, "%s \"%s\" not found",
                                          resource_name(request->resource), name);
        }
        return 0;
}

int get_objects(const GetRequest *request) {
        cleanup_error Error error = ERROR_NULL;
        cleanup_json json_t *objects = NULL;
        int r;

        if (request->options->watch)
                return fail_usage("%s cannot be watched", resource_name(request->resource));
        r = fetch(request, &objects, &error);
        if (r >= 0)
                r = print_objects(request, objects);
        if (r >= 0)
                r = missing_name(request, objects, &error);
        if (r < 0)
                return fail(r, &error);
        if (json_array_size(objects) == 0 && format_is_table(request->format))
                say_nothing_found(request->namespace);
        return STATUS_OK;
}
