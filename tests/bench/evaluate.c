/* SPDX-License-Identifier: Apache-2.0 */

/* Prints how many milliseconds it takes to evaluate 1000 DaemonSets for one node with 200 pods (the
 * median of many runs), and how many of them run there. The DaemonSets have the same fields as real
 * ones: node selectors, node affinity with several terms, tolerations, pod affinity. */

#include "agent/daemonset/rules/rules.h"
#include "agent/manifest/manifest.h"
#include "agent/model/match.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/file.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum {
        N_SETS = 1000,
        N_PODS = 200,
        N_TIMES = 51,
        N_A_FILE = 100,
};

static void print_set(FILE *out, unsigned i) {
        fprintf(out,
                "---\napiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: set%u}\nspec:\n"
                "  selector: {matchLabels: {app: set%u}}\n  template:\n    metadata: {labels: "
                "{app: set%u, tier: t%u}}\n"
                "    spec:\n      containers: [{name: c, image: busybox}]\n"
                "      tolerations: [{key: a, operator: Exists}, {key: dedicated, value: v%u}]\n",
                i, i, i, i % 7, i % 3);
        if (i % 2 == 0)
                fprintf(out, "      nodeSelector: {disktype: d%u, kubernetes.io/os: linux}\n",
                        i % 4);
        fprintf(out,
                "      affinity:\n        nodeAffinity:\n          "
                "requiredDuringSchedulingIgnoredDuringExecution:\n"
                "            nodeSelectorTerms:\n"
                "            - matchExpressions: [{key: zone, operator: In, values: [a, b, c]}]\n"
                "            - matchExpressions: [{key: cpus, operator: Gt, values: ['4']}, {key: "
                "gpu, operator: DoesNotExist}]\n");
        if (i % 10 == 0)
                fprintf(out, "        podAntiAffinity:\n          "
                             "requiredDuringSchedulingIgnoredDuringExecution:\n"
                             "          - {topologyKey: kubernetes.io/hostname, labelSelector: "
                             "{matchLabels: {app: other}}}\n");
}

static void print_pod(FILE *out, unsigned i) {
        fprintf(out,
                "---\napiVersion: v1\nkind: Pod\nmetadata: {name: p%u, labels: {app: p%u, tier: "
                "t%u}}\n"
                "spec: {containers: [{name: c, image: busybox}]}\n",
                i, i, i % 7);
}

/* From index i to the one before the end. */
static ManifestObjects parse_printed_manifests(void (*print)(FILE *, unsigned), unsigned i,
                                               unsigned end) {
        ManifestObjects objects = { 0 };
        cleanup_free char *text = NULL;
        size_t length;
        FILE *out = open_memstream(&text, &length);
        Error error = ERROR_NULL;
        int r;

        assert(out);
        for (; i < end; i++)
                print(out, i);
        r = memstream_finish(out, &text)
                    ? manifest_parse("bench", text, strlen(text), "node1", &objects, &error)
                    : -ENOMEM;
        if (r < 0) {
                fprintf(stderr, "%s\n", error_message(&error, r));
                abort();
        }
        return objects;
}

static NodeLabelsTaints make_node(void) {
        static const char *const labels[][2] = {
                { "disktype", "d0" }, { "cpus", "16" }, { "rack", "r1" }, { "zone", "w" }
        };
        NodeLabelsTaints node = { .name = strdup("node1") };
        Error error = ERROR_NULL;
        int r = node_labels_taints_add_well_known(&node, "node1", "amd64");

        for (size_t i = 0; i < N_ELEMENTS(labels) && r >= 0; i++)
                r = string_map_set(&node.labels, labels[i][0], labels[i][1]);
        node.taints.items = calloc(1, sizeof(Taint));
        node.taints.n = 1;
        if (r < 0 || !node.taints.items ||
            taint_parse("dedicated=v1:NoSchedule", &node.taints.items[0], &error) < 0)
                abort();
        return node;
}

static int compare_durations(const void *a, const void *b) {
        const uint64_t *x = a, *y = b;

        return (*x > *y) - (*x < *y);
}

int main(void) {
        ManifestObjects sets[N_SETS / N_A_FILE],
                pods = parse_printed_manifests(print_pod, 0, N_PODS);
        NodePods peers = { (const Pod *const *) pods.pods.items, pods.pods.n };
        cleanup_with(node_labels_taints_done) NodeLabelsTaints node = make_node();
        uint64_t times[N_TIMES], median;
        unsigned n_run = 0;

        for (unsigned i = 0; i < N_ELEMENTS(sets); i++)
                sets[i] = parse_printed_manifests(print_set, i * N_A_FILE, (i + 1) * N_A_FILE);
        for (size_t time = 0; time < N_TIMES; time++) {
                uint64_t started = now_boottime_usec();

                for (size_t i = 0; i < N_SETS; i++) {
                        cleanup_with(daemonset_decision_done) DaemonSetDecision decision = { 0 };

                        if (daemonset_evaluate_placement(
                                    sets[i / N_A_FILE].daemonsets.items[i % N_A_FILE], &node,
                                    &peers, 0, &decision) < 0)
                                abort();
                        n_run += decision.verdict == DAEMONSET_SHOULD_RUN;
                }
                times[time] = now_boottime_usec() - started;
        }
        qsort(times, N_TIMES, sizeof(times[0]), compare_durations);
        median = times[N_TIMES / 2];
        printf("%.3f %u\n", (double) median / (double) USEC_PER_MSEC, n_run / N_TIMES);
        for (size_t i = 0; i < N_ELEMENTS(sets); i++)
                manifest_objects_done(&sets[i]);
        manifest_objects_done(&pods);
        return 0;
}
