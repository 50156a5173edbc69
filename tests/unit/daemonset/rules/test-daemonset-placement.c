/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a node should run a DaemonSet, and by which rule and with which message this is
 * decided. */

#include "agent/daemonset/rules/rules.h"
#include "agent/manifest/manifest.h"
#include "agent/model/match.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "tests/test.h"

#include <stdio.h>

#define HEAD                                                                                       \
        "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: d}\nspec:\n"                       \
        "  selector: {matchLabels: {app: d}}\n  template:\n    metadata: {labels: {app: d, tier: " \
        "a}}\n"                                                                                    \
        "    spec:\n      containers: [{name: c, image: busybox}]\n"

static ManifestObjects parse_manifest(const char *yaml) {
        ManifestObjects objects = { 0 };
        cleanup_error Error error = ERROR_NULL;
        int r = manifest_parse("f", yaml, strlen(yaml), "node1", &objects, &error);

        if (r < 0)
                test_fail(__FILE__, __LINE__, yaml, "is refused: %s", error_message(&error, r));
        REQUIRE(r == 0);
        return objects;
}

/* node1 with the labels hostname, disktype=hdd and cpus=8, and with taints, which are separated by
 * ' '. */
static NodeLabelsTaints make_node(const char *taints) {
        NodeLabelsTaints node = { .name = strdup("node1") };
        cleanup_free char *copy = strdup(taints);
        char *rest = copy, *word;

        REQUIRE(node.name && copy);
        REQUIRE(string_map_set(&node.labels, "kubernetes.io/hostname", "node1") == 0);
        REQUIRE(string_map_set(&node.labels, "disktype", "hdd") == 0);
        REQUIRE(string_map_set(&node.labels, "cpus", "8") == 0);
        while ((word = strsep(&rest, " "))) {
                cleanup_error Error error = ERROR_NULL;

                if (!*word)
                        continue;
                node.taints.items =
                        reallocarray(node.taints.items, node.taints.n + 1, sizeof(Taint));
                REQUIRE(node.taints.items);
                node.taints.items[node.taints.n] = (Taint){ 0 };
                REQUIRE(taint_parse(word, &node.taints.items[node.taints.n++], &error) == 0);
        }
        return node;
}

/* "run", "keep" or "stop", the rule and the reason. */
static char *verdict(const char *spec, const char *taints) {
        static const char *const words[] = { "run", "keep", "stop" };
        cleanup_with(node_labels_taints_done) NodeLabelsTaints node = make_node(taints);
        cleanup_with(daemonset_decision_done) DaemonSetDecision decision = { 0 };
        cleanup_free char *yaml = NULL;
        ManifestObjects objects;
        char *text;

        REQUIRE(asprintf(&yaml, HEAD "%s", spec) > 0);
        objects = parse_manifest(yaml);
        REQUIRE(daemonset_evaluate_placement(objects.daemonsets.items[0], &node, NULL, 0,
                                             &decision) == 0);
        REQUIRE(asprintf(&text, "%s %s: %s", words[decision.verdict],
                         decision.rule ? decision.rule : "-", decision.why) > 0);
        manifest_objects_done(&objects);
        return text;
}

#define AFFINITY(terms)                                                                   \
        "      affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution:" \
        " {nodeSelectorTerms: [" terms "]}}}\n"
#define LABEL(text) AFFINITY("{matchExpressions: [{" text "}]}")

TEST(first_rule_that_excludes_the_node_decides)
{
        static const struct {
                const char *spec, *taints, *verdict;
        } cases[] = {
                { "", "", "run -: nothing requires a different node" },
                { "      nodeSelector: {disktype: hdd}\n", "",
                  "run nodeSelector: the node has all labels of nodeSelector" },
                { "      nodeSelector: {disktype: ssd}\n", "",
                  "stop nodeSelector: nodeSelector requires disktype=ssd, the node has "
                  "disktype=hdd" },
                { "      nodeSelector: {gpu: 'yes'}\n", "",
                  "stop nodeSelector: nodeSelector requires gpu=yes, the node lacks the label "
                  "gpu" },
                { "      nodeName: node1\n", "", "run nodeName: nodeName names this node" },
                { "      nodeName: node2\n", "",
                  "stop nodeName: nodeName is 'node2', this node is 'node1'" },
                { LABEL("key: disktype, operator: In, values: [hdd, tape]"), "",
                  "run nodeAffinity: the required node affinity matches the node" },
                { LABEL("key: disktype, operator: In, values: [ssd, nvme]"), "",
                  "stop nodeAffinity: the required node affinity is disktype In [ssd, nvme], "
                  "the node has 'hdd'" },
                { LABEL("key: zone, operator: In, values: [a]"), "",
                  "stop nodeAffinity: the required node affinity is zone In [a], the node has "
                  "none" },
                { LABEL("key: disktype, operator: NotIn, values: [hdd]"), "",
                  "stop nodeAffinity: the required node affinity is disktype NotIn [hdd], the "
                  "node has 'hdd'" },
                { LABEL("key: zone, operator: NotIn, values: [a]"), "",
                  "run nodeAffinity: the required node affinity matches the node" },
                { LABEL("key: disktype, operator: Exists"), "",
                  "run nodeAffinity: the required node affinity matches the node" },
                { LABEL("key: disktype, operator: DoesNotExist"), "",
                  "stop nodeAffinity: the required node affinity is disktype DoesNotExist, the "
                  "node has 'hdd'" },
                { LABEL("key: cpus, operator: Gt, values: ['7']"), "",
                  "run nodeAffinity: the required node affinity matches the node" },
                { LABEL("key: cpus, operator: Gt, values: ['8']"), "",
                  "stop nodeAffinity: the required node affinity is cpus Gt [8], the node has "
                  "'8'" },
                { LABEL("key: cpus, operator: Lt, values: ['16']"), "",
                  "run nodeAffinity: the required node affinity matches the node" },
                { LABEL("key: disktype, operator: Lt, values: ['16']"), "",
                  "stop nodeAffinity: the required node affinity is disktype Lt [16], the node "
                  "has 'hdd'" },
                { AFFINITY("{matchExpressions: [{key: zone, operator: Exists}]}, "
                           "{matchFields: [{key: metadata.name, operator: In, values: [node1]}]}"),
                  "", "run nodeAffinity: the required node affinity matches the node" },
                { AFFINITY("{matchExpressions: [{key: zone, operator: Exists}]}, "
                           "{matchFields: [{key: metadata.name, operator: NotIn, values: "
                           "[node1]}]}"),
                  "",
                  "stop nodeAffinity: none of the 2 terms of the required node affinity matches; "
                  "the first is zone Exists, the node has none" },
                { AFFINITY("{}"), "",
                  "stop nodeAffinity: the required node affinity has an empty term, which no node "
                  "matches" },
                { "", "a=b:NoSchedule", "keep taint: the taint a=b:NoSchedule is not tolerated" },
                { "", "a=b:NoExecute", "stop taint: the taint a=b:NoExecute is not tolerated" },
                { "", "a:NoSchedule b:NoExecute",
                  "stop taint: the taint b:NoExecute is not tolerated" },
                { "", "a=b:PreferNoSchedule",
                  "run taint: no taint of the node excludes it, and nothing requires a different "
                  "node" },
                { "      tolerations: [{key: a, operator: Exists}]\n", "a=b:NoExecute",
                  "run taint: no taint of the node excludes it, and nothing requires a different "
                  "node" },
                { "      tolerations: [{key: a, value: c}]\n", "a=b:NoSchedule",
                  "keep taint: the taint a=b:NoSchedule is not tolerated" },
                { "      tolerations: [{key: a, value: b, effect: NoExecute}]\n", "a=b:NoSchedule",
                  "keep taint: the taint a=b:NoSchedule is not tolerated" },
                { "      tolerations: [{operator: Exists}]\n", "a=b:NoSchedule c:NoExecute",
                  "run taint: no taint of the node excludes it, and nothing requires a different "
                  "node" },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                cleanup_free char *got = verdict(cases[i].spec, cases[i].taints);

                EXPECT_STREQ(got, cases[i].verdict);
        }
}

TEST(daemon_pods_tolerate_node_conditions)
{
        static const struct {
                const char *spec, *taint;
                bool runs;
        } cases[] = {
                { "", "node.kubernetes.io/not-ready:NoExecute", true },
                { "", "node.kubernetes.io/unreachable:NoExecute", true },
                { "", "node.kubernetes.io/disk-pressure:NoSchedule", true },
                { "", "node.kubernetes.io/memory-pressure:NoSchedule", true },
                { "", "node.kubernetes.io/pid-pressure:NoSchedule", true },
                { "", "node.kubernetes.io/unschedulable:NoSchedule", true },
                { "", "node.kubernetes.io/network-unavailable:NoSchedule", false },
                { "      hostNetwork: true\n", "node.kubernetes.io/network-unavailable:NoSchedule",
                  true },
                { "", "node.kubernetes.io/not-ready:NoSchedule", false },
                { "", "node.kubernetes.io/out-of-disk:NoSchedule", false },
                { "      priorityClassName: system-node-critical\n",
                  "node.kubernetes.io/out-of-disk:NoSchedule", false },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                cleanup_free char *got = verdict(cases[i].spec, cases[i].taint);

                if ((strncmp(got, "run ", 4) == 0) != cases[i].runs)
                        test_fail(__FILE__, __LINE__, cases[i].taint, "gives %s", got);
        }
}

TEST(critical_pods_of_old_versions_tolerate_out_of_disk)
{
        static const char yaml[] =
                "apiVersion: extensions/v1beta1\nkind: DaemonSet\nmetadata: {name: d}\nspec:\n"
                "  template:\n    metadata: {labels: {app: d}, annotations: "
                "{scheduler.alpha.kubernetes.io/critical-pod: ''}}\n"
                "    spec: {containers: [{name: c, image: busybox}]}\n";
        cleanup_with(node_labels_taints_done) NodeLabelsTaints node =
                make_node("node.kubernetes.io/out-of-disk:NoSchedule");
        cleanup_with(daemonset_decision_done) DaemonSetDecision decision = { 0 };
        ManifestObjects objects = parse_manifest(yaml);

        REQUIRE(daemonset_evaluate_placement(objects.daemonsets.items[0], &node, NULL, 0,
                                             &decision) == 0);
        EXPECT_EQ(decision.verdict, DAEMONSET_SHOULD_RUN);
        manifest_objects_done(&objects);
}

TEST(toleration_seconds_end)
{
        static const struct {
                unsigned now_sec;
                DaemonSetVerdict verdict;
                unsigned until_sec;
        } cases[] = {
                { 1000, DAEMONSET_SHOULD_RUN, 1030 },
                { 1029, DAEMONSET_SHOULD_RUN, 1030 },
                { 1030, DAEMONSET_SHOULD_STOP, 0 },
                { 9999, DAEMONSET_SHOULD_STOP, 0 },
        };
        ManifestObjects objects = parse_manifest(
                HEAD "      tolerations: [{key: a, operator: Exists, effect: NoExecute, "
                     "tolerationSeconds: 30}]\n");
        cleanup_with(node_labels_taints_done) NodeLabelsTaints node = make_node("a:NoExecute");

        node.taints.items[0].time_added = strdup("1970-01-01T00:16:40Z");
        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                cleanup_with(daemonset_decision_done) DaemonSetDecision decision = { 0 };

                REQUIRE(daemonset_evaluate_placement(objects.daemonsets.items[0], &node, NULL,
                                                     cases[i].now_sec * USEC_PER_SEC,
                                                     &decision) == 0);
                EXPECT_EQ(decision.verdict, cases[i].verdict);
                EXPECT_EQ(decision.until, cases[i].until_sec * USEC_PER_SEC);
        }
        manifest_objects_done(&objects);
}

/* Returns the decision for a set with this affinity while the pods of a file run. */
static char *verdict_beside_of(const char *affinity, ObjectSource source, const char *pods,
                               ObjectSource other) {
        cleanup_with(node_labels_taints_done) NodeLabelsTaints node = make_node("");
        cleanup_with(daemonset_decision_done) DaemonSetDecision decision = { 0 };
        cleanup_free char *yaml = NULL;
        const Pod *peers[8];
        NodePods list = { .items = peers };
        ManifestObjects set, others;
        char *text;

        REQUIRE(asprintf(&yaml, HEAD "%s", affinity) > 0);
        set = parse_manifest(yaml);
        others = parse_manifest(pods);
        set.daemonsets.items[0]->metadata.source = source;
        for (; list.n < others.pods.n; list.n++) {
                others.pods.items[list.n]->metadata.source = other;
                peers[list.n] = others.pods.items[list.n];
        }
        REQUIRE(daemonset_evaluate_placement(set.daemonsets.items[0], &node, &list, 0, &decision) ==
                0);
        REQUIRE(asprintf(&text, "%s: %s", decision.rule ? decision.rule : "-", decision.why) > 0);
        EXPECT(decision.verdict != DAEMONSET_SHOULD_STOP);
        manifest_objects_done(&set);
        manifest_objects_done(&others);
        return text;
}

static char *verdict_beside(const char *affinity, const char *pods) {
        return verdict_beside_of(affinity, OBJECT_SOURCE_FILE, pods, OBJECT_SOURCE_FILE);
}

#define OTHER(ns, labels)                                                                    \
        "apiVersion: v1\nkind: Pod\nmetadata: {name: o, namespace: " ns ", labels: {" labels \
        "}}\nspec: {containers: [{name: c, image: busybox}]}\n"
#define WANTS(kind, term)                                                               \
        "      affinity: {" kind ": {requiredDuringSchedulingIgnoredDuringExecution: [" \
        "{topologyKey: kubernetes.io/hostname, " term "}]}}\n"

TEST(pod_affinity_is_evaluated_among_the_pods_of_the_node)
{
        static const char unmatched[] = "podAffinity: no pod on this node matches podAffinity";
        static const char content[] = "-: nothing requires a different node";
        static const struct {
                const char *affinity, *pods, *verdict;
        } cases[] = {
                { WANTS("podAffinity", "labelSelector: {matchLabels: {app: o}}"),
                  OTHER("default", "app: o"), content },
                { WANTS("podAffinity", "labelSelector: {matchLabels: {app: o}}"),
                  OTHER("default", "app: p"), unmatched },
                { WANTS("podAffinity", "labelSelector: {matchLabels: {app: o}}"),
                  OTHER("other", "app: o"), unmatched },
                { WANTS("podAffinity", "labelSelector: {matchLabels: {app: o}}, namespaces: "
                                       "[other]"),
                  OTHER("other", "app: o"), content },
                { WANTS("podAffinity", "labelSelector: {matchLabels: {app: o}}, "
                                       "namespaceSelector: {}"),
                  OTHER("other", "app: o"), content },
                { WANTS("podAffinity",
                        "labelSelector: {matchLabels: {app: o}}, namespaceSelector: {matchLabels: "
                        "{kubernetes.io/metadata.name: third}}"),
                  OTHER("other", "app: o"), unmatched },
                { WANTS("podAffinity", "labelSelector: {matchLabels: {app: d}}"),
                  OTHER("default", "app: p"), content },
                { WANTS("podAffinity", "labelSelector: {matchExpressions: [{key: app, operator: "
                                       "Exists}]}, matchLabelKeys: [tier]"),
                  OTHER("default", "app: o, tier: a"), content },
                { WANTS("podAffinity", "labelSelector: {matchLabels: {app: o}}, matchLabelKeys: "
                                       "[tier]"),
                  OTHER("default", "app: o, tier: b"), unmatched },
                { WANTS("podAntiAffinity", "labelSelector: {matchLabels: {app: o}}"),
                  OTHER("default", "app: o"),
                  "podAntiAffinity: podAntiAffinity excludes a node with pod "
                  "default/o-node1" },
                { WANTS("podAntiAffinity", "labelSelector: {matchLabels: {app: o}}, "
                                           "mismatchLabelKeys: [tier]"),
                  OTHER("default", "app: o, tier: a"), content },
                { WANTS("podAntiAffinity", "labelSelector: {matchLabels: {app: o}}"),
                  OTHER("default", "app: p"), content },
                { "",
                  "apiVersion: v1\nkind: Pod\nmetadata: {name: o}\nspec:\n"
                  "      containers: [{name: c, image: busybox}]\n" WANTS(
                          "podAntiAffinity", "labelSelector: {matchLabels: {app: d}}"),
                  "podAntiAffinity: podAntiAffinity of pod default/o-node1 excludes it" },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                cleanup_free char *got = verdict_beside(cases[i].affinity, cases[i].pods);

                EXPECT_STREQ(got, cases[i].verdict);
        }
}

static bool runs_beside(const char *affinity, ObjectSource source, const char *pods,
                        ObjectSource other) {
        cleanup_free char *verdict = verdict_beside_of(affinity, source, pods, other);

        return !strstr(verdict, "ffinity:");
}

TEST(labels_and_affinity_of_pods_with_lower_trust_are_ignored)
{
        static const bool counts[N_OBJECT_SOURCES][N_OBJECT_SOURCES] = {
                /* columns: the pod's source (file, url, index, api); rows: the set's source */
                [OBJECT_SOURCE_FILE] = { false, true, false, false, false },
                [OBJECT_SOURCE_URL] = { false, true, true, false, false },
                [OBJECT_SOURCE_INDEX] = { false, true, false, true, false },
                [OBJECT_SOURCE_APISERVER] = { true, true, true, true, true },
        };

        for (ObjectSource by = OBJECT_SOURCE_FILE; by < N_OBJECT_SOURCES; by++)
                for (ObjectSource other = 0; other < N_OBJECT_SOURCES; other++) {
                        bool expected = counts[by][other];

                        EXPECT_EQ(runs_beside(WANTS("podAffinity", "labelSelector: {matchLabels: "
                                                                   "{app: o}}"),
                                              by, OTHER("default", "app: o"), other),
                                  expected);
                        EXPECT_EQ(runs_beside(WANTS("podAntiAffinity", "labelSelector: "
                                                                       "{matchLabels: {app: o}}"),
                                              by, OTHER("default", "app: o"), other),
                                  !expected);
                        EXPECT_EQ(runs_beside("", by,
                                              "apiVersion: v1\nkind: Pod\nmetadata: {name: o}\n"
                                              "spec:\n      containers: [{name: c, image: "
                                              "busybox}]\n" WANTS("podAntiAffinity",
                                                                  "labelSelector: {matchLabels: "
                                                                  "{app: d}}"),
                                              other),
                                  !expected);
                }
}

TEST(node_without_the_topology_label_is_in_no_domain)
{
        cleanup_free char *wants = verdict_beside(
                "      affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "
                "[{topologyKey: zone, labelSelector: {}}]}}\n",
                OTHER("default", "app: o"));
        cleanup_free char *avoids =
                verdict_beside("      affinity: {podAntiAffinity: "
                               "{requiredDuringSchedulingIgnoredDuringExecution: "
                               "[{topologyKey: zone, labelSelector: {}}]}}\n",
                               OTHER("default", "app: o"));

        EXPECT_STREQ(wants, "podAffinity: podAffinity requires pods of the same zone, but the node "
                            "lacks that label");
        EXPECT_STREQ(avoids, "-: nothing requires a different node");
}
