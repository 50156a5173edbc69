/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/cli/get.h"

#include "agent/cli/client.h"
#include "agent/cli/daemonsets.h"
#include "agent/cli/words.h"
#include "common/cleanup.h"

/* get nodes, of which there is one. */

/* "Ready", and what the node is short of: "Ready,MemoryPressure". */
static void write_conditions(const json_t *node, FILE *out) {
        size_t i;
        json_t *condition;

        fputs("Ready", out);
        json_array_foreach(json_at(node, "status", "conditions"), i, condition) {
                const char *type = strna(json_text(condition, "type"));

                if (streq(strna(json_text(condition, "status")), "True") && !streq(type, "Ready"))
                        fprintf(out, ",%s", type);
        }
}

static void write_node(const json_t *node, FILE *out, void *userdata) {
        cleanup_free char *labels = format_pairs(json_at(node, "metadata", "labels"));
        size_t n = json_array_size(json_at(node, "spec", "taints"));

        fprintf(out, "%s\t", strna(json_text(node, "metadata", "name")));
        write_conditions(node, out);
        fprintf(out, "\t%zu\t%s\n", n, strna(labels));
}

int get_nodes(const GetRequest *request) {
        cleanup_error Error error = ERROR_NULL;
        cleanup_json json_t *node = NULL, *nodes = json_array();
        Columns columns = COLUMNS_TABLE;
        const char *missing;
        int r = client_get_json(request->options->socket, "/node", &node, &error);

        if (r < 0 || json_array_append(nodes, node) < 0)
                return fail(r < 0 ? r : -ENOMEM, &error);
        missing = resource_missing_name(nodes, request->names, request->n_names);
        if (missing)
                return fail(error_setf(&error, ENOENT, "nodes \"%s\" not found", missing), &error);
        if (request->format == FORMAT_JSON || request->format == FORMAT_YAML)
                r = print_list(request->format, request->n_names == 1, nodes);
        else if (request->format == FORMAT_NAME)
                r = print_names("node", nodes);
        else
                r = print_rows(&columns,
                               request->options->no_headers ? NULL
                                                            : "NAME\tSTATUS\tTAINTS\tLABELS\n",
                               nodes, write_node, NULL);
        return r < 0 ? fail(r, &error) : STATUS_OK;
}
