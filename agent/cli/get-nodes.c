/* SPDX-License-Identifier: Apache-2.0 */
/* `mainstay get nodes`. */

#include "agent/cli/get.h"

#include "agent/cli/client.h"
#include "agent/cli/daemonsets.h"
#include "agent/cli/words.h"
#include "agent/model/node-status.h"
#include "common/cleanup.h"

/* get nodes: this node. */

/* The word for a condition that needs attention, or NULL. */
static const char *condition_word(const json_t *condition) {
        const size_t n_prefix = strlen(NODE_CONDITION_PREFIX);
        const char *type = strna(json_text(condition, "type"));
        const char *status = strna(json_text(condition, "status"));

        if (streq(type, NODE_REACHED_CONDITION))
                return streq(status, "False") ? "APIServerNotReached" : NULL;
        if (streq(type, "Ready") || !streq(status, "True"))
                return NULL;
        if (streq(type, NODE_REFUSED_CONDITION))
                return "APIServerRefuses";
        return strncmp(type, NODE_CONDITION_PREFIX, n_prefix) == 0 ? type + n_prefix : type;
}

static bool is_node_ready(const json_t *node) {
        size_t i;
        json_t *condition;

        json_array_foreach(json_at(node, "status", "conditions"), i, condition)
                if (streq_ptr(json_text(condition, "type"), "Ready"))
                        return streq_ptr(json_text(condition, "status"), "True");
        return false;
}

/* "Ready" or "NotReady", and the conditions that need attention:
 * "Ready,MemoryPressure,APIServerNotReached". */
static void write_condition_words(const json_t *node, FILE *out) {
        size_t i;
        json_t *condition;

        fputs(is_node_ready(node) ? "Ready" : "NotReady", out);
        json_array_foreach(json_at(node, "status", "conditions"), i, condition) {
                const char *word = condition_word(condition);

                if (word)
                        fprintf(out, ",%s", word);
        }
}

static void write_node_row(const json_t *node, FILE *out, void *userdata) {
        const GetRequest *request = userdata;
        const char *server = json_text(node, "metadata", "annotations", "mainstay.dev/api-server");
        cleanup_free char *labels = format_pairs(json_at(node, "metadata", "labels"));
        size_t n = json_array_size(json_at(node, "spec", "taints"));

        fprintf(out, "%s\t", strna(json_text(node, "metadata", "name")));
        write_condition_words(node, out);
        fprintf(out, "\t%zu\t%s", n, strna(labels));
        if (request->format == FORMAT_WIDE)
                fprintf(out, "\t%s", server ? server : "<none>");
        fputc('\n', out);
}

static const char *node_headings(const GetRequest *request) {
        if (request->options->no_headers)
                return NULL;
        return request->format == FORMAT_WIDE ? "NAME\tSTATUS\tTAINTS\tLABELS\tAPI SERVER\n"
                                              : "NAME\tSTATUS\tTAINTS\tLABELS\n";
}

int get_nodes(const GetRequest *request) {
        cleanup_error Error error = ERROR_NULL;
        cleanup_json json_t *node = NULL, *nodes = json_array();
        Columns columns = COLUMNS_TABLE;
        GetRequest asked = *request;
        const char *missing;
        int r = client_get_json(request->options->socket, "/node", &node, &error);

        if (r < 0 || json_array_append(nodes, node) < 0)
                return fail_with_error(r < 0 ? r : -ENOMEM, &error);
        missing = find_missing_object_name(nodes, request->names, request->n_names);
        if (missing)
                return fail_with_error(
                        error_setf(&error, ENOENT, "nodes \"%s\" not found", missing), &error);
        if (request->format == FORMAT_JSON || request->format == FORMAT_YAML)
                r = print_list(request->format, request->n_names == 1, nodes);
        else if (request->format == FORMAT_NAME)
                r = print_object_names("node", nodes);
        else
                r = print_rows(&columns, node_headings(request), nodes, write_node_row, &asked);
        return r < 0 ? fail_with_error(r, &error) : STATUS_OK;
}
