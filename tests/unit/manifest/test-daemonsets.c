/* SPDX-License-Identifier: Apache-2.0 */
/* DaemonSets from files: defaults of each version, and validation. */

#include "agent/manifest/manifest.h"
#include "agent/model/schema.h"
#include "common/cleanup.h"
#include "common/strv.h"
#include "tests/test.h"

#define V1       "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: d}\nspec:\n"
#define SELECTOR "  selector: {matchLabels: {app: d}}\n"
#define LABELS   "    metadata: {labels: {app: d}}\n"
#define POD      "    spec: {containers: [{name: c, image: busybox}]}\n"
#define TEMPLATE "  template:\n" LABELS POD

static ManifestObjects parse_ok(const char *yaml) {
        ManifestObjects objects = { 0 };
        cleanup_error Error error = ERROR_NULL;
        int r = manifest_parse("f", yaml, strlen(yaml), "node1", &objects, &error);

        if (r < 0)
                test_fail(__FILE__, __LINE__, yaml, "is refused: %s", error_message(&error, r));
        REQUIRE(r == 0 && objects.daemonsets.n + objects.pods.n > 0);
        return objects;
}

static void expect_verdict(const char *yaml, const char *verdict) {
        ManifestObjects objects = { 0 };
        cleanup_error Error error = ERROR_NULL;
        int r = manifest_parse("f", yaml, strlen(yaml), "node1", &objects, &error);

        EXPECT_STREQ(r < 0 ? error_message(&error, r) : "", verdict);
        if (objects.warnings)
                test_fail(__FILE__, __LINE__, yaml, "warns: %s", objects.warnings[0]);
        manifest_objects_done(&objects);
}

TEST(a_daemonset_has_the_defaults_of_its_version)
{
        static const struct {
                const char *version;
                DaemonSetStrategy strategy;
        } cases[] = {
                { "apps/v1", DAEMONSET_ROLLING_UPDATE },
                { "apps/v1beta2", DAEMONSET_ROLLING_UPDATE },
                { "apps/v1beta1", DAEMONSET_ON_DELETE },
                { "extensions/v1beta1", DAEMONSET_ON_DELETE },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                cleanup_free char *yaml = NULL;
                ManifestObjects objects;
                const DaemonSetSpec *spec;

                REQUIRE(asprintf(&yaml,
                                 "apiVersion: %s\nkind: DaemonSet\nmetadata: {name: d}\n"
                                 "spec:\n" SELECTOR TEMPLATE,
                                 cases[i].version) > 0);
                objects = parse_ok(yaml);
                spec = &objects.daemonsets.items[0]->spec;
                EXPECT_EQ(spec->update_strategy.type, cases[i].strategy);
                EXPECT_EQ(spec->revision_history_limit.value, 10);
                EXPECT_EQ(spec->min_ready_seconds.value, 0);
                EXPECT_EQ(spec->template.spec.restart_policy, RESTART_POLICY_ALWAYS);
                EXPECT(!spec->template.metadata.name && !spec->template.metadata.namespace);
                EXPECT_STREQ(objects.daemonsets.items[0]->metadata.namespace, "default");
                EXPECT_EQ(strlen(objects.daemonsets.items[0]->metadata.uid), 32);
                manifest_objects_done(&objects);
        }
}

TEST(rolling_update_defaults_to_one_unavailable)
{
        ManifestObjects objects = parse_ok(V1 SELECTOR TEMPLATE);
        const RollingUpdateDaemonSet *rolling =
                objects.daemonsets.items[0]->spec.update_strategy.rolling_update;

        REQUIRE(rolling);
        EXPECT_EQ(int_or_percent_of_one(&rolling->max_unavailable, true), 1);
        EXPECT_EQ(int_or_percent_of_one(&rolling->max_surge, true), 0);
        manifest_objects_done(&objects);
}

TEST(old_versions_default_the_selector_from_the_template)
{
        ManifestObjects objects = parse_ok("apiVersion: extensions/v1beta1\nkind: DaemonSet\n"
                                           "metadata: {name: d}\nspec:\n" TEMPLATE);
        const LabelSelector *selector = objects.daemonsets.items[0]->spec.selector;

        REQUIRE(selector && selector->match_labels.n == 1);
        EXPECT_STREQ(selector->match_labels.items[0].key, "app");
        EXPECT_STREQ(selector->match_labels.items[0].value, "d");
        manifest_objects_done(&objects);
        expect_verdict("apiVersion: apps/v1beta2\nkind: DaemonSet\n"
                       "metadata: {name: d}\nspec:\n" TEMPLATE,
                       "f:5:3: spec.selector: is required");
}

TEST(daemonset_uid_depends_on_name_and_node)
{
        ManifestObjects a = parse_ok(V1 SELECTOR TEMPLATE);
        ManifestObjects b = parse_ok(V1 "  minReadySeconds: 9\n" SELECTOR TEMPLATE);
        ManifestObjects c = parse_ok("apiVersion: apps/v1\nkind: DaemonSet\n"
                                     "metadata: {name: e}\nspec:\n" SELECTOR TEMPLATE);
        const char *uid = a.daemonsets.items[0]->metadata.uid;

        EXPECT_STREQ(b.daemonsets.items[0]->metadata.uid, uid);
        EXPECT(!streq(c.daemonsets.items[0]->metadata.uid, uid));
        manifest_objects_done(&a);
        manifest_objects_done(&b);
        manifest_objects_done(&c);
}

#define ROLLING(text) V1 SELECTOR "  updateStrategy: {rollingUpdate: {" text "}}\n" TEMPLATE

TEST(daemonsets_are_validated)
{
        static const struct {
                const char *yaml;
                const char *verdict;
        } cases[] = {
                { V1 "  selector: {}\n" TEMPLATE,
                  "f:5:13: spec.selector: empty selector is invalid for daemonset: it would take "
                  "every pod" },
                { V1 "  selector: {matchLabels: {app: e}}\n" TEMPLATE,
                  "f:7:24: spec.template.metadata.labels: `selector` does not match template "
                  "`labels`" },
                { V1 "  selector: {matchExpressions: [{key: app, operator: In}]}\n" TEMPLATE,
                  "f:5:33: spec.selector.matchExpressions[0].values: must be specified when "
                  "`operator` is 'In' or 'NotIn'" },
                { V1 "  selector: {matchExpressions: [{key: app, operator: Exists, values: [d]}]}"
                     "\n" TEMPLATE,
                  "f:5:70: spec.selector.matchExpressions[0].values: may not be specified when "
                  "`operator` is 'Exists' or 'DoesNotExist'" },
                { V1 "  selector: {matchExpressions: [{key: app, operator: Gt, values: "
                     "[d]}]}\n" TEMPLATE,
                  "f:5:54: spec.selector.matchExpressions[0].operator: must be In, NotIn, Exists "
                  "or "
                  "DoesNotExist, not 'Gt'" },
                { V1 SELECTOR "  template:\n" LABELS
                              "    spec: {restartPolicy: Never, containers: [{name: c, image: x}]}"
                              "\n",
                  "f:8:27: spec.template.spec.restartPolicy: must be Always in a DaemonSet, not "
                  "Never" },
                { V1 SELECTOR "  template:\n" LABELS
                              "    spec: {activeDeadlineSeconds: 5, containers: [{name: c, image: "
                              "x}]}\n",
                  "f:8:35: spec.template.spec.activeDeadlineSeconds: activeDeadlineSeconds in "
                  "DaemonSet is not Supported" },
                { V1 SELECTOR "  template:\n" LABELS, "f:7:5: spec.template.spec: is required" },
                { V1 SELECTOR, "f:5:3: spec.template: is required" },
                { "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: d}\n",
                  "f:1:1: spec: is required" },
                { "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: D_1}\nspec:\n" SELECTOR
                          TEMPLATE,
                  "f:3:18: metadata.name: must be a DNS subdomain, not 'D_1'" },
                { V1 SELECTOR "  template:\n    metadata:\n      labels: {app: d}\n"
                              "      containers: [{name: c, image: x}]\n",
                  "f:9:7: spec.template.metadata.containers: is a field of the pod's spec; it "
                  "belongs below spec.template.spec, not below metadata" },
                { V1 SELECTOR "  template:\n" LABELS "    containers: [{name: c, image: x}]\n",
                  "f:8:5: spec.template.containers: is a field of the pod's spec; it belongs below "
                  "spec.template.spec, not below template" },
                { V1 SELECTOR "  template:\n" LABELS
                              "    spec: {containers: [{name: c, image: x, ports: [{containerPort: "
                              "0}]}]}\n",
                  "f:8:69: spec.template.spec.containers[0].ports[0].containerPort: must be "
                  "between "
                  "1 and 65535, not 0" },
                { V1 SELECTOR
                  "  template:\n" LABELS
                  "    spec: {containers: [{name: c, image: x, volumeMounts: [{name: v, "
                  "mountPath: /v}]}]}\n",
                  "f:8:67: spec.template.spec.containers[0].volumeMounts[0].name: must name a "
                  "volume of this pod, not 'v'" },
                { V1 "  minReadySeconds: -1\n" SELECTOR TEMPLATE,
                  "f:5:20: spec.minReadySeconds: must be between 0 and 2147483647, not -1" },
                { ROLLING("maxUnavailable: 0"),
                  "f:6:35: spec.updateStrategy.rollingUpdate.maxSurge: cannot be 0 when "
                  "maxUnavailable is 0" },
                { ROLLING("maxUnavailable: 1, maxSurge: 1"),
                  "f:6:65: spec.updateStrategy.rollingUpdate.maxSurge: may not be set when "
                  "maxUnavailable is non-zero" },
                { ROLLING("maxUnavailable: 101%"),
                  "f:6:52: spec.updateStrategy.rollingUpdate.maxUnavailable: must be a number or a "
                  "percentage up to 100%, not '101%'" },
                { ROLLING("maxUnavailable: 0%, maxSurge: 50%"), "" },
                { V1 "  updateStrategy: {type: Recreate}\n" SELECTOR TEMPLATE,
                  "f:5:26: spec.updateStrategy.type: must be RollingUpdate or OnDelete, not "
                  "'Recreate'" },
                { "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: d, uid: "
                  "00000000000000000000000000000000}\nspec:\n" SELECTOR TEMPLATE,
                  "f:3:26: metadata.uid: must be a string, not the number "
                  "00000000000000000000000000000000; quote it" },
                { V1 SELECTOR TEMPLATE "---\n" V1 SELECTOR TEMPLATE,
                  "f:12:18: metadata.name: daemonset default/d is defined twice in this file" },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++)
                expect_verdict(cases[i].yaml, cases[i].verdict);
}

#define P "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n"
#define C "  containers: [{name: c, image: busybox}]\n"
#define REQUIRED(t)                                                                               \
        P C "  affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: " t "}}" \
            "\n"
#define TERM(t) REQUIRED("{nodeSelectorTerms: [{matchExpressions: [{" t "}]}]}")
#define TERM_PLACE                                                                  \
        "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution" \
        ".nodeSelectorTerms[0].matchExpressions[0]"

TEST(placement_is_validated)
{
        static const struct {
                const char *yaml;
                const char *verdict;
        } cases[] = {
                { P C "  nodeSelector: {a b: c}\n",
                  "f:6:17: spec.nodeSelector: must be a qualified name such as "
                  "example.com/my-name, not 'a b'" },
                { P C "  nodeSelector: {a: b c}\n",
                  "f:6:21: spec.nodeSelector[a]: must be letters, digits, '-', '_' or '.' between "
                  "alphanumerics, not 'b c'" },
                { P C "  tolerations: [{effect: NoSchedule}]\n",
                  "f:6:17: spec.tolerations[0].operator: must be Exists when `key` is empty, which "
                  "means \"match all values and all keys\"" },
                { P C "  tolerations: [{key: a, operator: Exists, value: b}]\n",
                  "f:6:51: spec.tolerations[0].value: must be empty when `operator` is 'Exists'" },
                { P C "  tolerations: [{key: a, effect: NoSchedule, tolerationSeconds: 3}]\n",
                  "f:6:34: spec.tolerations[0].effect: must be 'NoExecute' when "
                  "`tolerationSeconds` is set" },
                { P C "  tolerations: [{key: a, effect: Sometimes}]\n",
                  "f:6:34: spec.tolerations[0].effect: must be NoSchedule, PreferNoSchedule or "
                  "NoExecute, not 'Sometimes'" },
                { P C "  tolerations: [{operator: Exists}]\n", "" },
                { REQUIRED("{}"),
                  "f:6:77: spec.affinity.nodeAffinity."
                  "requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms: is required" },
                { TERM("key: a, operator: In"),
                  "f:6:118: " TERM_PLACE
                  ".values: must be specified when `operator` is 'In' or 'NotIn'" },
                { TERM("key: a, operator: Gt, values: [x]"),
                  "f:6:149: " TERM_PLACE ".values: must be a whole number when `operator` is 'Lt' "
                  "or 'Gt', not 'x'" },
                { TERM("key: a, operator: Lt, values: ['1', '2']"),
                  "f:6:149: " TERM_PLACE ".values: must be specified single value when `operator` "
                  "is 'Lt' or 'Gt'" },
                { TERM("key: a, operator: Near, values: [b]"),
                  "f:6:137: " TERM_PLACE ".operator: must be In, NotIn, Exists, DoesNotExist, Gt "
                  "or Lt, not 'Near'" },
                { P C "  affinity: {podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "
                      "[{labelSelector: {}}]}}\n",
                  "f:6:77: spec.affinity.podAffinity."
                  "requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey: is required" },
                { P C "  affinity: {podAffinity: {preferredDuringSchedulingIgnoredDuringExecution: "
                      "[{weight: 101, podAffinityTerm: {topologyKey: a}}]}}\n",
                  "f:6:87: spec.affinity.podAffinity."
                  "preferredDuringSchedulingIgnoredDuringExecution[0].weight: must be between 1 "
                  "and 100, not 101" },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++)
                expect_verdict(cases[i].yaml, cases[i].verdict);
}

TEST(match_fields_support_only_the_node_name)
{
#define FIELD_TERM(t) REQUIRED("{nodeSelectorTerms: [{matchFields: [{" t "}]}]}")
#define FIELD_PLACE                                                                 \
        "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution" \
        ".nodeSelectorTerms[0].matchFields[0]"
        expect_verdict(FIELD_TERM("key: metadata.name, operator: In, values: [node1]"), "");
        expect_verdict(FIELD_TERM("key: spec.x, operator: In, values: [a]"),
                       "f:6:119: " FIELD_PLACE ".key: not a valid field selector key: it must be "
                       "metadata.name, not 'spec.x'");
        expect_verdict(FIELD_TERM("key: metadata.name, operator: In, values: [a, b]"),
                       "f:6:156: " FIELD_PLACE ".values: must be only one value when `operator` is "
                       "'In' or 'NotIn' for node field selector");
        expect_verdict(FIELD_TERM("key: metadata.name, operator: Exists"),
                       "f:6:144: " FIELD_PLACE
                       ".operator: must be In or NotIn for a field, not 'Exists'");
}

#define ANNOTATED(json)                                                     \
        "apiVersion: v1\nkind: Pod\nmetadata:\n  name: p\n  annotations:\n" \
        "    scheduler.alpha.kubernetes.io/affinity: '" json "'\nspec:\n" C

TEST(affinity_annotation_becomes_the_field)
{
        ManifestObjects objects = parse_ok(ANNOTATED(
                "{\"nodeAffinity\": {\"requiredDuringSchedulingIgnoredDuringExecution\": "
                "{\"nodeSelectorTerms\": [{\"matchExpressions\": [{\"key\": \"a\", \"operator\": "
                "\"In\", \"values\": [\"b\"]}]}]}}}"));
        const Affinity *affinity = objects.pods.items[0]->spec.affinity;

        REQUIRE(affinity && affinity->node_affinity && affinity->node_affinity->required);
        EXPECT_STREQ(affinity->node_affinity->required->terms.items[0]
                             .match_expressions.items[0]
                             .values[0],
                     "b");
        manifest_objects_done(&objects);

        expect_verdict(ANNOTATED("{\"nodeAffinity\": []}"),
                       "f:6:45: metadata.annotations[scheduler.alpha.kubernetes.io/affinity]: "
                       "affinity:1:18: nodeAffinity: must be a mapping, not a list");
        expect_verdict(ANNOTATED("{\"nodeAffinty\": {}}"),
                       "f:6:45: metadata.annotations[scheduler.alpha.kubernetes.io/affinity]: "
                       "affinity:1:2: nodeAffinty: is not a field of Affinity; did you mean "
                       "'nodeAffinity'?");
}

/* These fields are present in objects that were copied from a cluster. */
TEST(fields_that_only_a_cluster_uses_are_ignored_with_a_warning)
{
        static const char copied[] =
                "apiVersion: v1\nkind: Pod\nmetadata: {name: p, generateName: p-,\n"
                "  ownerReferences: [{name: d, uid: u, kind: DaemonSet, apiVersion: apps/v1, "
                "controller: true}]}\nspec:\n  topologySpreadConstraints: [{maxSkew: 1}]\n" C;
        ManifestObjects objects = { 0 };
        cleanup_error Error error = ERROR_NULL;

        REQUIRE(manifest_parse("f", copied, strlen(copied), "n", &objects, &error) >= 0);
        EXPECT_EQ(objects.pods.items[0]->metadata.owner_references.n, 0);
        REQUIRE(strv_length(objects.warnings) == 2);
        EXPECT_STREQ(objects.warnings[0], "f:4:3: metadata.ownerReferences: is ignored: the owner "
                                          "is an object of a cluster");
        EXPECT_STREQ(objects.warnings[1], "f:6:3: spec.topologySpreadConstraints: is ignored: it "
                                          "spreads pods over the nodes of a cluster");
        manifest_objects_done(&objects);
}
