/* SPDX-License-Identifier: Apache-2.0 */
/* `mainstay describe daemonset`: its status, rollout and pod template. */

#include "agent/cli/daemonset-requests.h"

#include "agent/cli/agent-client.h"
#include "agent/cli/columns.h"
#include "agent/cli/describe-template.h"
#include "agent/cli/describe.h"
#include "agent/cli/output.h"
#include "agent/cli/resources.h"
#include "agent/cli/words.h"
#include "agent/model/json.h"
#include "agent/model/label-text.h"
#include "agent/model/own-keys.h"
#include "agent/model/status-condition.h"
#include "common/cleanup.h"
#include "common/json-text.h"

#include <stdio.h>

/* describe daemonset: kubectl's lines, and the rule that determines whether the set runs on this
 * node. */

static void describe_daemonset_on_node(const json_t *set, FILE *out) {
        const json_t *here = find_status_condition(set, "RunsHere");
        const json_t *progress = find_status_condition(set, "Progressing");
        const json_t *admitted = find_status_condition(set, "Admitted");
        const char *message = progress ? json_text(progress, "message") : NULL;

        if (here)
                fprintf(out, "Runs Here:\t%s: %s\n",
                        streq_ptr(json_text(here, "status"), "True") ? "yes" : "no",
                        strna(json_text(here, "message")));
        if (admitted && !streq_ptr(json_text(admitted, "status"), "True"))
                fprintf(out, "Admitted:\tno (%s): %s\n", strna(json_text(admitted, "reason")),
                        strna(json_text(admitted, "message")));
        fprintf(out, "Revision:\t%lld\n", daemonset_count(set, "observedGeneration"));
        if (message && message[0])
                fprintf(out, "Rollout:\t%s\n", message);
}

static void describe_update_strategy(const json_t *set, FILE *out) {
        const json_t *strategy = json_at(set, "spec", "updateStrategy");
        const char *const keys[] = { "maxUnavailable", "maxSurge" };

        fprintf(out, "Update Strategy:\t%s", strna(json_text(strategy, "type")));
        for (size_t i = 0; i < N_ELEMENTS(keys); i++) {
                const json_t *value = json_at(strategy, "rollingUpdate", keys[i]);

                if (json_is_string(value))
                        fprintf(out, " %s=%s", keys[i], json_string_value(value));
                else if (value)
                        fprintf(out, " %s=%lld", keys[i], (long long) json_integer_value(value));
        }
        fputc('\n', out);
}

static void describe_daemonset_counts(const json_t *set, FILE *out) {
        static const struct {
                const char *title;
                const char *key;
        } rows[] = {
                { "Desired Number of Nodes Scheduled", "desiredNumberScheduled" },
                { "Current Number of Nodes Scheduled", "currentNumberScheduled" },
                { "Number of Nodes Scheduled with Up-to-date Pods", "updatedNumberScheduled" },
                { "Number of Nodes Scheduled with Available Pods", "numberAvailable" },
                { "Number of Nodes Misscheduled", "numberMisscheduled" },
        };

        for (size_t i = 0; i < N_ELEMENTS(rows); i++)
                fprintf(out, "%s: %lld\n", rows[i].title, daemonset_count(set, rows[i].key));
}

static void describe_daemonset(const json_t *set, FILE *out) {
        cleanup_free char *selector = format_label_selector(json_at(set, "spec", "selector"));
        cleanup_free char *node_selector =
                format_pairs(json_at(set, "spec", "template", "spec", "nodeSelector"));

        fprintf(out, "Name:\t%s\n", strna(json_text(set, "metadata", "name")));
        fprintf(out, "Namespace:\t%s\n", strna(json_text(set, "metadata", "namespace")));
        fprintf(out, "Source:\t%s\n", strna(own_json_value(set, OWN_KEY_SOURCE)));
        fprintf(out, "Selector:\t%s\n", strna(selector));
        fprintf(out, "Node-Selector:\t%s\n", strna(node_selector));
        describe_map("Labels", json_at(set, "metadata", "labels"), "", out);
        describe_map("Annotations", json_at(set, "metadata", "annotations"), "", out);
        describe_daemonset_on_node(set, out);
        describe_update_strategy(set, out);
        describe_daemonset_counts(set, out);
        describe_template(json_at(set, "spec", "template"), out);
}

static int print_daemonset(const json_t *set, const json_t *events) {
        char *text = NULL;
        size_t length;
        FILE *out = open_memstream(&text, &length);

        if (!out)
                return -ENOMEM;
        describe_daemonset(set, out);
        describe_events(set, events, out);
        return columns_print_description(out, &text);
}

int describe_daemonsets(const Options *options, char *const *names, size_t n_names) {
        const char *namespace = daemonsets_namespace(options);
        cleanup_error Error error = ERROR_NULL;
        cleanup_json json_t *sets = NULL, *events = NULL;
        size_t i;
        json_t *set;
        int r = daemonsets_fetch(options, namespace, names, n_names, &sets, &error);

        if (r < 0)
                return fail_with_error(r, &error);
        r = client_get_json(options->socket, "/events", &events, &error);
        if (r < 0)
                return fail_with_error(r, &error);
        json_array_foreach(sets, i, set) {
                if (i > 0)
                        printf("\n\n");
                r = print_daemonset(set, events);
                if (r < 0)
                        return fail_with_error(r, &error);
        }
        if (json_array_size(sets) == 0)
                report_nothing_found(namespace);
        return STATUS_OK;
}
