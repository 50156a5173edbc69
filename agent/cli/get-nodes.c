/* SPDX-License-Identifier: Apache-2.0 */
/* `mainstay get nodes`. */

#include "agent/cli/command-get.h"

#include "agent/cli/agent-client.h"
#include "agent/cli/words.h"
#include "agent/model/node-status.h"
#include "agent/model/own-keys.h"
#include "common/cleanup.h"
#include "common/clock.h"

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

/* "control-plane,worker", of the labels node-role.kubernetes.io/control-plane and …/worker. */
static void write_node_roles(const json_t *node, FILE *out) {
        static const char prefix[] = "node-role.kubernetes.io/";
        const char *key, *separator = "";
        const json_t *value;

        json_object_foreach(json_at(node, "metadata", "labels"), key, value) {
                if (strncmp(key, prefix, strlen(prefix)) != 0 || !key[strlen(prefix)])
                        continue;
                fprintf(out, "%s%s", separator, key + strlen(prefix));
                separator = ",";
        }
        if (!separator[0])
                fputs("<none>", out);
}

static const char *find_address(const json_t *node, const char *type) {
        size_t i;
        const json_t *address;

        json_array_foreach(json_at(node, "status", "addresses"), i, address)
                if (streq_ptr(json_text(address, "type"), type))
                        return json_text(address, "address");
        return NULL;
}

static const char *or_none(const char *text) {
        return text ? text : "<none>";
}

static const char *or_unknown(const char *text) {
        return text && text[0] ? text : "<unknown>";
}

static void write_wide_cells(const json_t *node, FILE *out) {
        const json_t *info = json_at(node, "status", "nodeInfo");
        const char *architecture = json_text(info, "architecture");

        fprintf(out, "\t%s\t%s\t%s\t%s", or_none(find_address(node, "InternalIP")),
                or_none(find_address(node, "ExternalIP")), or_unknown(json_text(info, "osImage")),
                or_unknown(json_text(info, "kernelVersion")));
        if (architecture && architecture[0])
                fprintf(out, " (%s)", architecture);
        fprintf(out, "\t%s\t%s", or_unknown(json_text(info, "containerRuntimeVersion")),
                or_none(own_json_value(node, OWN_KEY_API_SERVER)));
}

static void write_node_row(const json_t *node, FILE *out, void *userdata) {
        const GetRequest *request = userdata;
        const char *created = json_text(node, "metadata", "creationTimestamp");
        char age[DURATION_SIZE];

        fprintf(out, "%s\t", strna(json_text(node, "metadata", "name")));
        write_condition_words(node, out);
        fputc('\t', out);
        write_node_roles(node, out);
        fprintf(out, "\t%s\t%s",
                created ? format_age(age, created, now_realtime_usec()) : "<unknown>",
                or_unknown(json_text(node, "status", "nodeInfo", "kubeletVersion")));
        if (request->format == FORMAT_WIDE)
                write_wide_cells(node, out);
        end_row(request, node, out);
}

/* kubectl's columns; the API server is ours. */
static int print_nodes_table(const GetRequest *request, const json_t *nodes) {
        Columns columns = COLUMNS_TABLE;
        GetRequest asked = *request;
        char headings[192] = "";

        if (!request->options->no_headers)
                (void) snprintf(headings, sizeof(headings), "NAME\tSTATUS\tROLES\tAGE\tVERSION%s%s",
                                request->format == FORMAT_WIDE
                                        ? "\tINTERNAL-IP\tEXTERNAL-IP\tOS-IMAGE\tKERNEL-VERSION\t"
                                          "CONTAINER-RUNTIME\tAPI SERVER"
                                        : "",
                                end_of_headings(request));
        return print_rows(&columns, headings, nodes, write_node_row, &asked);
}

int get_nodes(const GetRequest *request) {
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
        if (request->format == FORMAT_JSON || request->format == FORMAT_YAML)
                r = print_list(request->format, request->n_names == 1, nodes);
        else if (request->format == FORMAT_NAME)
                r = print_object_names("node", nodes);
        else
                r = print_nodes_table(request, nodes);
        return r < 0 ? fail_with_error(r, &error) : STATUS_OK;
}
