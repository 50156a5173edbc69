/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/cli/get.h"

#include "agent/cli/client.h"
#include "agent/cli/daemonsets.h"
#include "agent/cli/pods.h"
#include "agent/cli/words.h"
#include "common/cleanup.h"
#include "common/clock.h"

/* get daemonsets, in kubectl's columns; get nodes, of which there is one. */

static void write_containers(const json_t *set, const char *key, FILE *out) {
        size_t i;
        json_t *container;

        fputc('\t', out);
        json_array_foreach(json_at(set, "spec", "template", "spec", "containers"), i, container)
                fprintf(out, "%s%s", i > 0 ? "," : "", strna(json_text(container, key)));
}

static void write_row(const json_t *set, FILE *out, void *userdata) {
        const GetRequest *request = userdata;
        cleanup_free char *node_selector =
                format_pairs(json_at(set, "spec", "template", "spec", "nodeSelector"));
        cleanup_free char *selector = format_label_selector(json_at(set, "spec", "selector"));
        char age[DURATION_SIZE];

        if (request->options->all_namespaces)
                fprintf(out, "%s\t", strna(json_text(set, "metadata", "namespace")));
        fprintf(out, "%s\t%lld\t%lld\t%lld\t%lld\t%lld\t%s\t%s",
                strna(json_text(set, "metadata", "name")),
                daemonset_count(set, "desiredNumberScheduled"),
                daemonset_count(set, "currentNumberScheduled"), daemonset_count(set, "numberReady"),
                daemonset_count(set, "updatedNumberScheduled"),
                daemonset_count(set, "numberAvailable"), strna(node_selector),
                format_age(age, json_text(set, "metadata", "creationTimestamp"),
                           now_realtime_usec()));
        if (request->format == FORMAT_WIDE) {
                write_containers(set, "name", out);
                write_containers(set, "image", out);
                fprintf(out, "\t%s", strna(selector));
        }
        fputc('\n', out);
}

static int print_table(const GetRequest *request, const json_t *sets) {
        GetRequest copy = *request;
        Columns columns = COLUMNS_TABLE;
        char headings[192] = "";

        if (!request->options->no_headers)
                (void) snprintf(headings, sizeof(headings),
                                "%sNAME\tDESIRED\tCURRENT\tREADY\tUP-TO-DATE\tAVAILABLE\tNODE "
                                "SELECTOR\t"
                                "AGE%s\n",
                                request->options->all_namespaces ? "NAMESPACE\t" : "",
                                request->format == FORMAT_WIDE ? "\tCONTAINERS\tIMAGES\tSELECTOR"
                                                               : "");
        return print_rows(&columns, headings, sets, write_row, &copy);
}

static int print_sets(const GetRequest *request, json_t *sets) {
        switch (request->format) {
        case FORMAT_JSON:
        case FORMAT_YAML:
                return print_list(request->format, request->n_names == 1, sets);
        case FORMAT_NAME:
                return print_names("daemonset.apps", sets);
        default:
                return json_array_size(sets) > 0 ? print_table(request, sets) : 0;
        }
}

int get_daemonsets(const GetRequest *request) {
        cleanup_error Error error = ERROR_NULL;
        cleanup_json json_t *sets = NULL;
        int r;

        if (request->options->watch)
                return fail_usage("daemonsets cannot be watched; 'mainstay rollout status' waits "
                                  "for one");
        r = daemonsets_fetch(request->options, request->namespace, request->names, request->n_names,
                             &sets, &error);
        if (r >= 0)
                r = print_sets(request, sets);
        if (r < 0)
                return fail(r, &error);
        if (json_array_size(sets) == 0 && format_is_table(request->format))
                say_nothing_found(request->namespace);
        if (format_is_table(request->format))
                print_manifest_errors(request->options->socket);
        return STATUS_OK;
}

static void write_node(const json_t *node, FILE *out, void *userdata) {
        cleanup_free char *labels = format_pairs(json_at(node, "metadata", "labels"));
        size_t n = json_array_size(json_at(node, "spec", "taints"));

        fprintf(out, "%s\t%zu\t%s\n", strna(json_text(node, "metadata", "name")), n, strna(labels));
}

int get_nodes(const GetRequest *request) {
        cleanup_error Error error = ERROR_NULL;
        cleanup_json json_t *node = NULL, *nodes = json_array();
        Columns columns = COLUMNS_TABLE;
        int r = client_get_json(request->options->socket, "/node", &node, &error);

        if (r < 0 || json_array_append(nodes, node) < 0)
                return fail(r < 0 ? r : -ENOMEM, &error);
        for (size_t i = 0; i < request->n_names; i++)
                if (!streq(resource_bare_name(request->names[i]),
                           strna(json_text(node, "metadata", "name"))))
                        return fail(error_setf(&error, ENOENT, "nodes \"%s\" not found",
                                               resource_bare_name(request->names[i])),
                                    &error);
        if (request->format == FORMAT_JSON || request->format == FORMAT_YAML)
                r = print_list(request->format, request->n_names == 1, nodes);
        else if (request->format == FORMAT_NAME)
                r = print_names("node", nodes);
        else
                r = print_rows(&columns,
                               request->options->no_headers ? NULL : "NAME\tTAINTS\tLABELS\n",
                               nodes, write_node, NULL);
        return r < 0 ? fail(r, &error) : STATUS_OK;
}
