/* SPDX-License-Identifier: Apache-2.0 */

/* mainstay match: shows which of these manifests would run on a node with given labels and taints.
 * Uses the agent's own functions; needs no agent. */

#include "agent/cli/cli.h"

#include "agent/cli/columns.h"
#include "agent/cli/input.h"
#include "agent/daemonset/rules/rules.h"
#include "agent/model/match.h"
#include "agent/model/names.h"
#include "common/architecture.h"
#include "common/array.h"
#include "common/cleanup.h"
#include "common/clock.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* All files, kept until the end: the pods of one file may matter for the affinity of pods in
 * another. */
typedef struct MatchInputs {
        ManifestObjects *objects; /* as many as there are arguments */
        bool *good;
        size_t n;
        Pod **pods; /* pods that would run here, for affinity between pods */
        size_t n_pods;
} MatchInputs;

static void match_inputs_done(MatchInputs *inputs) {
        for (size_t i = 0; i < inputs->n; i++)
                manifest_objects_done(&inputs->objects[i]);
        for (size_t i = 0; i < inputs->n_pods; i++)
                pod_free(inputs->pods[i]);
        free(inputs->objects);
        free(inputs->good);
        free(inputs->pods);
}

static int add_node_label(NodeLabelsTaints *node, char *pair, Error *reterr) {
        char *equals = strchr(pair, '=');
        int r;

        if (!equals)
                return error_setf(reterr, EINVAL, "'%s' must be key=value", pair);
        *equals = '\0';
        r = check_label_key(pair, reterr);
        if (r < 0)
                return r;
        r = check_label_value(equals + 1, reterr);
        if (r < 0)
                return r;
        return string_map_set(&node->labels, pair, equals + 1);
}

static int add_node_taint(NodeLabelsTaints *node, char *text, Error *reterr) {
        int r;

        if (!ARRAY_RESERVE(node->taints.items, node->taints.n, 1))
                return -ENOMEM;
        node->taints.items[node->taints.n] = (Taint){ 0 };
        r = taint_parse(text, &node->taints.items[node->taints.n++], reterr);
        return r < 0 ? error_prefixf(reterr, r, "'%s'", text) : 0;
}

/* Calls 'add' for each part of a comma-separated list. */
static int add_node_option_words(NodeLabelsTaints *node, const char *option, const char *words,
                                 int (*add)(NodeLabelsTaints *, char *, Error *), Error *reterr) {
        cleanup_free char *copy = strdup(strna(words));
        char *rest = copy, *word;

        if (!copy)
                return -ENOMEM;
        while ((word = strsep(&rest, ","))) {
                int r = *word ? add(node, word, reterr) : 0;

                if (r < 0)
                        return error_prefixf(reterr, r, "--%s", option);
        }
        return 0;
}

static int compose_match_node(const Options *options, NodeLabelsTaints *node, Error *reterr) {
        int r;

        node->name = strdup(options->node ? options->node : "node");
        if (!node->name)
                return -ENOMEM;
        r = check_dns_subdomain(node->name, reterr);
        if (r < 0)
                return error_prefixf(reterr, r, "--node");
        r = add_node_option_words(node, "labels", options->labels, add_node_label, reterr);
        if (r < 0)
                return r;
        r = add_node_option_words(node, "taints", options->taints, add_node_taint, reterr);
        return r < 0 ? r
                     : node_labels_taints_add_well_known(node, node->name, machine_architecture());
}

static int read_match_inputs(const Options *options, const NodeLabelsTaints *node,
                             MatchInputs *inputs) {
        int status = STATUS_OK;

        inputs->objects = calloc(options->n_words, sizeof(*inputs->objects));
        inputs->good = calloc(options->n_words, sizeof(*inputs->good));
        if (!inputs->objects || !inputs->good)
                return fail_with_error(-ENOMEM, NULL);
        for (; inputs->n < options->n_words; inputs->n++) {
                cleanup_error Error error = ERROR_NULL;
                int r = read_manifest(options->words[inputs->n], node->name,
                                      &inputs->objects[inputs->n], &error);

                inputs->good[inputs->n] = r >= 0;
                if (r < 0)
                        status = fail_with_error(r, &error);
        }
        return status;
}

static int keep_match_pod(MatchInputs *inputs, Pod *pod) {
        if (!ARRAY_RESERVE(inputs->pods, inputs->n_pods, 1)) {
                pod_free(pod);
                return -ENOMEM;
        }
        inputs->pods[inputs->n_pods++] = pod;
        return 0;
}

static int keep_daemonset_pod(MatchInputs *inputs, const DaemonSet *set,
                              const NodeLabelsTaints *node) {
        cleanup_with(daemonset_decision_done) DaemonSetDecision decision = { 0 };
        const Pod *template = &set->spec.template;
        Pod *pod;
        int r = daemonset_evaluate_placement(set, node, NULL, now_realtime_usec(), &decision);

        if (r < 0 || decision.verdict != DAEMONSET_SHOULD_RUN)
                return r;
        r = daemonset_make_pod(set, template, "match", 1, node->name, &pod);
        return r < 0 ? r : keep_match_pod(inputs, pod);
}

/* The pods that would run if there were no affinity between pods. */
static int keep_matching_pods(MatchInputs *inputs, const NodeLabelsTaints *node) {
        int r;

        for (size_t i = 0; i < inputs->n; i++) {
                const ManifestObjects *objects = &inputs->objects[i];

                for (size_t j = 0; j < objects->pods.n; j++) {
                        Pod *copy;

                        if (!pod_matches_node(&objects->pods.items[j]->spec, node))
                                continue;
                        r = pod_copy(objects->pods.items[j], &copy);
                        if (r < 0)
                                return r;
                        r = keep_match_pod(inputs, copy);
                        if (r < 0)
                                return r;
                }
                for (size_t j = 0; j < objects->daemonsets.n; j++) {
                        r = keep_daemonset_pod(inputs, objects->daemonsets.items[j], node);
                        if (r < 0)
                                return r;
                }
        }
        return 0;
}

static void print_pod_matches(const char *file, const ManifestObjects *objects,
                              const NodeLabelsTaints *node, FILE *out) {
        for (size_t i = 0; i < objects->pods.n; i++) {
                const Pod *pod = objects->pods.items[i];
                size_t length = strlen(pod->metadata.name) - strlen(node->name) - 1;
                bool runs = pod_matches_node(&pod->spec, node);

                fprintf(out, "%s\tpod\t%s\t%.*s\t%s\t%s\n", input_name(file),
                        pod->metadata.namespace, (int) length, pod->metadata.name,
                        runs ? "yes" : "no",
                        runs ? "a pod of a file runs on every node that it matches"
                             : "node(s) didn't match Pod's node affinity/selector");
        }
}

static int print_daemonset_matches(const char *file, const ManifestObjects *objects,
                                   const NodeLabelsTaints *node, const MatchInputs *inputs,
                                   FILE *out) {
        const NodePods peers = { .items = (const Pod *const *) inputs->pods, .n = inputs->n_pods };

        for (size_t i = 0; i < objects->daemonsets.n; i++) {
                const DaemonSet *set = objects->daemonsets.items[i];
                cleanup_with(daemonset_decision_done) DaemonSetDecision decision = { 0 };
                int r = daemonset_evaluate_placement(set, node, &peers, now_realtime_usec(),
                                                     &decision);

                if (r < 0)
                        return r;
                fprintf(out, "%s\tdaemonset\t%s\t%s\t%s\t%s\n", input_name(file),
                        set->metadata.namespace, set->metadata.name,
                        decision.verdict == DAEMONSET_SHOULD_RUN ? "yes" : "no", decision.why);
        }
        return 0;
}

static int write_match_table(const Options *options, const MatchInputs *inputs,
                             const NodeLabelsTaints *node, FILE *out) {
        int r = 0;

        if (!options->no_headers)
                fputs("FILE\tKIND\tNAMESPACE\tNAME\t"
                      "RUNS\tWHY\n",
                      out);
        for (size_t i = 0; i < inputs->n && r >= 0; i++) {
                if (!inputs->good[i])
                        continue;
                print_pod_matches(options->words[i], &inputs->objects[i], node, out);
                r = print_daemonset_matches(options->words[i], &inputs->objects[i], node, inputs,
                                            out);
        }
        return r;
}

static int print_match_table(const Options *options, const MatchInputs *inputs,
                             const NodeLabelsTaints *node) {
        cleanup_free char *text = NULL;
        Columns columns = COLUMNS_TABLE;
        size_t length;
        FILE *out = open_memstream(&text, &length);
        int r;

        if (!out)
                return -ENOMEM;
        r = write_match_table(options, inputs, node, out);
        if (fclose(out) != 0 && r >= 0)
                r = -ENOMEM;
        return r < 0 ? r : columns_write(&columns, text, stdout);
}

int run_match(const Options *options) {
        cleanup_with(node_labels_taints_done) NodeLabelsTaints node = { 0 };
        cleanup_with(match_inputs_done) MatchInputs inputs = { 0 };
        cleanup_error Error error = ERROR_NULL;
        int status, r;

        if (options->n_words == 0)
                return fail_usage(
                        "files are required: 'mainstay match FILE...'; '-' is standard input");
        r = compose_match_node(options, &node, &error);
        if (r < 0)
                return fail_usage("%s", error_message(&error, r));
        status = read_match_inputs(options, &node, &inputs);
        if (!inputs.good)
                return status;
        r = keep_matching_pods(&inputs, &node);
        if (r < 0)
                return fail_with_error(r, &error);
        r = print_match_table(options, &inputs, &node);
        return r < 0 ? fail_with_error(r, &error) : status;
}
