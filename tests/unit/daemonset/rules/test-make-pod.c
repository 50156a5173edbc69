/* SPDX-License-Identifier: Apache-2.0 */
/* The pod that is created from a DaemonSet's template. */

#include "agent/daemonset/rules/rules.h"
#include "agent/manifest/manifest.h"
#include "agent/model/json.h"
#include "common/cleanup.h"
#include "tests/test.h"

#include <stdio.h>

static const char yaml[] =
        "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: logs, namespace: kube-system}\n"
        "spec:\n  selector: {matchLabels: {app: logs}}\n"
        "  template:\n    metadata: {labels: {app: logs}, annotations: {a: b}}\n    spec:\n"
        "      tolerations:\n"
        "      - {key: node.kubernetes.io/not-ready, operator: Exists, effect: NoExecute}\n"
        "      - {key: mine, operator: Exists}\n"
        "      affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: "
        "{nodeSelectorTerms: [{matchExpressions: [{key: a, operator: Exists}]}]}}}\n"
        "      containers: [{name: c, image: busybox}]\n";

static ManifestObjects parse_manifest(const char *text) {
        ManifestObjects objects = { 0 };

        REQUIRE(manifest_parse("f", text, strlen(text), "node1", &objects, NULL) == 0);
        REQUIRE(objects.daemonsets.n == 1);
        return objects;
}

static Pod *make_daemon_pod(const DaemonSet *set, const char *node) {
        char hash[REVISION_HASH_SIZE];
        Pod *pod;

        REQUIRE(daemonset_revision_hash(&set->spec.template, hash) == 0);
        EXPECT_EQ(strlen(hash), 10);
        EXPECT_EQ(strspn(hash, "bcdfghjklmnpqrstvwxz2456789"), 10);
        REQUIRE(daemonset_make_pod(set, &set->spec.template, hash, 3, node, &pod) == 0);
        EXPECT_STREQ(string_map_get(&pod->metadata.labels, "controller-revision-hash"), hash);
        return pod;
}

TEST(pod_has_the_fields_that_the_controller_sets)
{
        ManifestObjects objects = parse_manifest(yaml);
        const DaemonSet *set = objects.daemonsets.items[0];
        cleanup_with(pod_freep) Pod *pod = make_daemon_pod(set, "node1");
        const OwnerReference *owner = object_controller(&pod->metadata);
        const NodeSelector *required = pod->spec.affinity->node_affinity->required;

        EXPECT_EQ(strlen(pod->metadata.name), 10);
        EXPECT(strncmp(pod->metadata.name, "logs-", 5) == 0);
        EXPECT_EQ(strspn(pod->metadata.name + 5, "bcdfghjklmnpqrstvwxz2456789"), 5);
        EXPECT_STREQ(pod->metadata.namespace, "kube-system");
        EXPECT_EQ(strlen(pod->metadata.uid), 32);
        EXPECT_STREQ(string_map_get(&pod->metadata.labels, "app"), "logs");
        EXPECT_STREQ(string_map_get(&pod->metadata.labels, "pod-template-generation"), "3");
        EXPECT_STREQ(string_map_get(&pod->metadata.annotations, "a"), "b");
        EXPECT_STREQ(pod->spec.node_name, "node1");
        REQUIRE(owner);
        EXPECT_STREQ(owner->kind, "DaemonSet");
        EXPECT_STREQ(owner->api_version, "apps/v1");
        EXPECT_STREQ(owner->name, "logs");
        EXPECT_STREQ(owner->uid, set->metadata.uid);
        REQUIRE(required->terms.n == 1 && required->terms.items[0].match_fields.n == 1);
        EXPECT_EQ(required->terms.items[0].match_expressions.n, 0);
        EXPECT_STREQ(required->terms.items[0].match_fields.items[0].key, "metadata.name");
        EXPECT_STREQ(required->terms.items[0].match_fields.items[0].values[0], "node1");
        /* The set has two tolerations, the controller adds six; one of them is the same. */
        EXPECT_EQ(pod->spec.tolerations.n, 7);
        EXPECT(daemonset_selects_pod(set, pod));
        manifest_objects_done(&objects);
}

static void replace_text(char **text, const char *by) {
        free(*text);
        *text = strdup(by);
        REQUIRE(*text);
}

TEST(set_controls_pods_by_uid_kind_group_namespace_and_selector)
{
        ManifestObjects objects = parse_manifest(yaml);
        const DaemonSet *set = objects.daemonsets.items[0];

        for (unsigned i = 0; i < 7; i++) {
                cleanup_with(pod_freep) Pod *pod = make_daemon_pod(set, "node1");
                OwnerReference *owner = &pod->metadata.owner_references.items[0];
                bool is_controlled = i < 2;

                if (i == 1)
                        replace_text(&owner->api_version, "apps/v1beta2");
                if (i == 2)
                        replace_text(&owner->uid, "another");
                if (i == 3)
                        replace_text(&owner->kind, "ReplicaSet");
                if (i == 4)
                        replace_text(&owner->api_version, "apps.example/v1");
                if (i == 5)
                        replace_text(&pod->metadata.namespace, "evil");
                if (i == 6)
                        owner->controller = false;
                EXPECT_EQ(daemonset_controls_pod(set, pod), is_controlled);
                if (is_controlled)
                        for (size_t label = 0; label < pod->metadata.labels.n; label++)
                                replace_text(&pod->metadata.labels.items[label].value, "other");
                EXPECT(!daemonset_controls_pod(set, pod));
        }
        manifest_objects_done(&objects);
}

TEST(pod_name_depends_on_revision_and_node)
{
        cleanup_free char *changed = strdup(yaml);
        ManifestObjects a = parse_manifest(yaml), b;
        cleanup_with(pod_freep) Pod *first = make_daemon_pod(a.daemonsets.items[0], "node1");
        cleanup_with(pod_freep) Pod *again = make_daemon_pod(a.daemonsets.items[0], "node1");
        cleanup_with(pod_freep) Pod *elsewhere = make_daemon_pod(a.daemonsets.items[0], "node2");
        cleanup_with(pod_freep) Pod *second = NULL;

        EXPECT_STREQ(again->metadata.name, first->metadata.name);
        EXPECT_STREQ(again->metadata.uid, first->metadata.uid);
        EXPECT(!streq(elsewhere->metadata.name, first->metadata.name));
        REQUIRE(changed);
        memcpy(strstr(changed, "a: b"), "a: c", 4);
        b = parse_manifest(changed);
        second = make_daemon_pod(b.daemonsets.items[0], "node1");
        EXPECT(!streq(second->metadata.name, first->metadata.name));
        manifest_objects_done(&a);
        manifest_objects_done(&b);
}

TEST(pod_is_read_back_from_its_record)
{
        ManifestObjects objects = parse_manifest(yaml);
        cleanup_with(pod_freep) Pod *pod = make_daemon_pod(objects.daemonsets.items[0], "node1");
        cleanup_with(pod_freep) Pod *again = NULL;
        cleanup_free char *json = pod_to_json(pod, NULL);

        REQUIRE(json && manifest_parse_record(json, strlen(json), &again, NULL) == 0);
        EXPECT(schema_equal(&pod_schema, pod, again));
        manifest_objects_done(&objects);
}

TEST(long_names_are_truncated_to_host_names)
{
        cleanup_free char *text = NULL;
        char name[101];
        ManifestObjects objects;
        cleanup_with(pod_freep) Pod *pod = NULL;

        memset(name, 'a', 100);
        name[100] = '\0';
        REQUIRE(asprintf(&text,
                         "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: %s}\nspec:\n"
                         "  selector: {matchLabels: {app: d}}\n  template:\n"
                         "    metadata: {labels: {app: d}}\n"
                         "    spec: {containers: [{name: c, image: busybox}]}\n",
                         name) > 0);
        objects = parse_manifest(text);
        pod = make_daemon_pod(objects.daemonsets.items[0], "node1");
        EXPECT_EQ(strlen(pod->metadata.name), 63);
        manifest_objects_done(&objects);
}
