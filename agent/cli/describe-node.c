/* SPDX-License-Identifier: Apache-2.0 */
/* `mainstay describe node`: conditions, capacity, labels, taints, the API server. */

#include "agent/cli/nodes.h"

#include "agent/cli/agent-client.h"
#include "agent/cli/columns.h"
#include "agent/cli/describe-template.h"
#include "agent/cli/describe.h"
#include "agent/cli/output.h"
#include "agent/cli/resources.h"
#include "agent/cli/words.h"
#include "agent/model/node-status.h"
#include "agent/model/own-keys.h"
#include "agent/model/status-condition.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/json-text.h"

#include <stdio.h>

/* describe node: kubectl's lines for which the agent has values. */

static void describe_taints(const json_t *node, FILE *out) {
        size_t i;
        json_t *taint;

        json_array_foreach(json_at(node, "spec", "taints"), i, taint) {
                const char *value = json_text(taint, "value");

                fprintf(out, "%s\t%s%s%s:%s\n", i == 0 ? "Taints:" : "",
                        strna(json_text(taint, "key")), value ? "=" : "", strna(value),
                        strna(json_text(taint, "effect")));
        }
        if (json_array_size(json_at(node, "spec", "taints")) == 0)
                fputs("Taints:\t<none>\n", out);
}

static void describe_node_conditions(const json_t *node, FILE *out) {
        size_t i;
        json_t *condition;

        fputs("Conditions:\n  Type\tStatus\tLast Change\tReason\tMessage\n"
              "  ----\t------\t-----------\t------\t-------\n",
              out);
        json_array_foreach(json_at(node, "status", "conditions"), i, condition) {
                const char *since = json_text(condition, "lastTransitionTime");
                char age[DURATION_SIZE];

                fprintf(out, "  %s\t%s\t%s\t%s\t%s\n", strna(json_text(condition, "type")),
                        strna(json_text(condition, "status")),
                        since ? format_age(age, since, now_realtime_usec()) : "<none>",
                        strna(json_text(condition, "reason")),
                        strna(json_text(condition, "message")));
        }
}

/* "yes, since Fri, 02 Jan 2026 03:04:05 +0000" */
static void describe_server_connection(const json_t *reached, const char *last_error, FILE *out) {
        const char *status = strna(json_text(reached, "status"));
        const char *since = json_text(reached, "lastTransitionTime");
        char time[LONG_TIME_SIZE];

        fprintf(out, "  Reached:\t%s",
                streq(status, "True")    ? "yes"
                : streq(status, "False") ? "no"
                                         : "not asked yet");
        if (since)
                fprintf(out, ", since %s", format_long_time(time, since));
        fprintf(out, "\n  Last Error:\t");
        write_quoted(last_error ? last_error : "<none>", out);
        fputc('\n', out);
}

/* The connection to the API server that the node has joined, if any; kubectl does not have this. */
static void describe_api_server(const json_t *node, FILE *out) {
        const json_t *reached = find_status_condition(node, NODE_REACHED_CONDITION);
        const json_t *refused = find_status_condition(node, NODE_REFUSED_CONDITION);
        const char *server = own_json_value(node, OWN_KEY_API_SERVER);
        const char *placer = own_json_value(node, OWN_KEY_DAEMONSETS_BY);
        const char *sentences = strna(json_text(refused, "message"));

        if (!reached) {
                fputs("API Server:\t<none>\n", out);
                return;
        }
        fprintf(out, "API Server:\t%s\n", server ? server : "<unknown>");
        describe_server_connection(reached, own_json_value(node, OWN_KEY_API_SERVER_ERROR), out);
        fputs("  Refused:\t", out);
        write_quoted(sentences[0] ? sentences : "<nothing>", out);
        if (placer)
                fprintf(out, "\n  DaemonSets:\tplaced by %s\n", placer);
        else
                fputs("\n  DaemonSets:\tplacement not known yet\n", out);
}

/* Whether Landlock restricts mainstay-image to its directory; kubectl does not have this. */
static void describe_landlock(const json_t *node, FILE *out) {
        const char *state = own_json_value(node, OWN_KEY_LANDLOCK);

        fprintf(out, "Landlock:\t%s\n",
                state ? "missing: mainstay-image is not confined to its directory" : "yes");
}

/* How stored Secrets and tokens of the API server are protected; kubectl does not have this. */
static void describe_secrets_at_rest(const json_t *node, FILE *out) {
        const char *state = own_json_value(node, OWN_KEY_SECRETS_AT_REST);

        if (!state)
                return;
        fputs("Secrets At Rest:\t", out);
        if (streq(state, "sealed"))
                fputs("encrypted, with a key that systemd seals", out);
        else if (streq(state, "clear"))
                fputs("unencrypted, as 'secretsAtRest: clear' permits", out);
        else {
                fputs("not kept: ", out);
                write_quoted(state, out);
        }
        fputc('\n', out);
}

/* Settings that are accepted without an effect; kubectl has no such line. */
static void describe_settings(const json_t *node, FILE *out) {
        const char *names = own_json_value(node, OWN_KEY_SETTINGS_WITHOUT_EFFECT);

        fputs("Settings Without Effect:\t", out);
        write_quoted(names ? names : "<none>", out);
        fputc('\n', out);
}

/* Events refer to a node by its name instead of a UID. */
static void describe_node_events(const json_t *node, const json_t *events, FILE *out) {
        cleanup_json json_t *object =
                json_pack("{s:{s:O?}}", "metadata", "uid", json_at(node, "metadata", "name"));

        describe_events(object, events, out);
}

static int print_node(const json_t *node, const json_t *events) {
        char *text = NULL;
        size_t length;
        FILE *out = open_memstream(&text, &length);

        if (!out)
                return -ENOMEM;
        fprintf(out, "Name:\t%s\n", strna(json_text(node, "metadata", "name")));
        describe_map("Labels", json_at(node, "metadata", "labels"), "", out);
        describe_taints(node, out);
        describe_api_server(node, out);
        describe_landlock(node, out);
        describe_secrets_at_rest(node, out);
        describe_settings(node, out);
        describe_node_conditions(node, out);
        describe_node_events(node, events, out);
        return columns_print_description(out, &text);
}

int describe_nodes(const Options *options, char *const *names, size_t n_names) {
        cleanup_error Error error = ERROR_NULL;
        cleanup_json json_t *node = NULL, *events = NULL, *nodes = json_array();
        const char *missing;
        int r = client_get_json(options->socket, "/node", &node, &error);

        if (r < 0 || json_array_append(nodes, node) < 0)
                return fail_with_error(r < 0 ? r : -ENOMEM, &error);
        missing = find_missing_object_name(nodes, names, n_names);
        if (missing)
                return fail_with_error(
                        error_setf(&error, ENOENT, "nodes \"%s\" not found", missing), &error);
        r = client_get_json(options->socket, "/events", &events, &error);
        if (r < 0)
                return fail_with_error(r, &error);
        r = print_node(node, events);
        return r < 0 ? fail_with_error(r, &error) : STATUS_OK;
}
