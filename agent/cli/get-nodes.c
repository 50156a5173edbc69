/* SPDX-License-Identifier: Apache-2.0 */
/* `mainstay get nodes`. */

#include "agent/cli/agent-client.h"
#include "agent/cli/get-output.h"
#include "agent/model/node-status.h"
#include "agent/model/own-keys.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/json-text.h"

enum {
        NODE_STATUS_CELL = 1
};

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

static void replace_node_status(const json_t *node, json_t *cells) {
        cleanup_free char *text = NULL;
        size_t length;
        FILE *out = open_memstream(&text, &length);

        if (!out)
                return;
        write_condition_words(node, out);
        if (memstream_finish(out, &text))
                (void) json_array_set_new(cells, NODE_STATUS_CELL, json_string(text));
}

static const char *api_server_of_node(const json_t *node) {
        return own_json_value(node, OWN_KEY_API_SERVER);
}

static const GetKind node_kind = { .word = "node",
                                   .is_cluster_wide = true,
                                   .table = &node_table_kind,
                                   .extra_heading = "api server",
                                   .extra_cell = api_server_of_node,
                                   .replace_cells = replace_node_status };

int get_nodes(const GetRequest *request) {
        cleanup_with(get_output_done) GetOutput output = { .request = request,
                                                           .kind = &node_kind,
                                                           .columns = COLUMNS_TABLE };
        cleanup_error Error error = ERROR_NULL;
        cleanup_json json_t *node = NULL, *nodes = json_array();
        const char *missing;
        int r = client_get_json(request->options->socket, "/node", &node, &error);

        if (r < 0 || json_array_append(nodes, node) < 0)
                return fail_with_error(r < 0 ? r : -ENOMEM, &error);
        missing = find_missing_object_name(nodes, request->names, request->n_names);
        if (missing)
                return fail_with_error(
                        error_setf(&error, ENOENT, "nodes \"%s\" not found", missing), &error);
        r = get_output_list(&output, nodes);
        return r < 0 ? fail_with_error(r, &error) : STATUS_OK;
}
