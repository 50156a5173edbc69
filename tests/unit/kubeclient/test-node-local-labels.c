/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/kubeclient/node-local-labels.h"
#include "agent/model/match.h"
#include "agent/model/pod.h"
#include "common/cleanup.h"
#include "common/json-text.h"
#include "tests/test.h"

#include <stdio.h>

#define LIST "mainstay.dev/own-labels"

static void own(NodeLabelsTaints *local, const char *key, const char *value) {
        REQUIRE(string_map_set(&local->labels, key, value) == 0);
}

static void own_taint(NodeLabelsTaints *local, const char *text) {
        local->taints.items = reallocarray(local->taints.items, local->taints.n + 1, sizeof(Taint));
        REQUIRE(local->taints.items);
        local->taints.items[local->taints.n] = (Taint){ 0 };
        REQUIRE(taint_parse(text, &local->taints.items[local->taints.n++], NULL) == 0);
}

/* A Node of the API server: labels, taints, and the two lists. */
static json_t *node(const char *labels, const char *taints, const char *own_labels,
                    const char *own_taints) {
        cleanup_free char *text = NULL;
        json_t *json;

        REQUIRE(asprintf(&text,
                         "{\"metadata\":{\"labels\":{%s},\"annotations\":{\"x\":\"y\","
                         "\"" LIST "\":\"%s\",\"mainstay.dev/own-taints\":\"%s\"}},"
                         "\"spec\":{\"taints\":[%s]}}",
                         labels, own_labels, own_taints, taints) >= 0);
        json = json_loads(text, 0, NULL);
        REQUIRE(json);
        return json;
}

static void expect_patch(json_t *taken, const NodeLabelsTaints *local, const char *expected) {
        cleanup_json json_t *known = taken, *patch = node_local_metadata_patch(known, local);
        cleanup_free char *text = json_dumps(patch, JSON_COMPACT | JSON_SORT_KEYS);

        EXPECT_STREQ(text, expected);
}

static void expect_others(json_t *taken, const char *expected) {
        cleanup_json json_t *known = taken;
        cleanup_with(node_labels_taints_done) NodeLabelsTaints others = { 0 };
        char text[512] = "", taint[TAINT_SIZE];
        size_t n = 0;

        REQUIRE(node_external_labels_parse(known, &others) == 0);
        for (size_t i = 0; i < others.labels.n; i++)
                n += (size_t) snprintf(text + n, sizeof(text) - n, "%s=%s ",
                                       others.labels.items[i].key, others.labels.items[i].value);
        for (size_t i = 0; i < others.taints.n; i++)
                n += (size_t) snprintf(text + n, sizeof(text) - n, "%s ",
                                       taint_format(&others.taints.items[i], taint));
        EXPECT_STREQ(text, expected);
}

TEST(labels_for_administrators_are_left_out)
{
        static const struct {
                const char *key;
                bool is_ours;
        } cases[] = {
                { "disk", true },
                { "example.com/rack", true },
                { "kubernetes.io/hostname", true },
                { "topology.kubernetes.io/zone", true },
                { "node.kubernetes.io/anything", true },
                { "feature.node.kubernetes.io/cpu", true },
                { "sub.kubelet.kubernetes.io/x", true },
                { "node-role.kubernetes.io/control-plane", false },
                { "node-restriction.kubernetes.io/x", false },
                { "kubernetes.io/other", false },
                { "x.k8s.io/other", false },
                { "notkubernetes.io/x", true },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++)
                EXPECT_EQ(node_label_is_self_assignable(cases[i].key), cases[i].is_ours);
}

TEST(external_labels_are_never_in_a_patch)
{
        cleanup_with(node_labels_taints_done) NodeLabelsTaints local = { 0 };

        own(&local, "disk", "ssd");
        expect_patch(node("\"disk\":\"ssd\",\"team\":\"red\"", "", "disk=ssd", ""), &local,
                     "{\"annotations\":{\"mainstay.dev/own-taints\":null}}");
}

TEST(local_label_is_restored)
{
        cleanup_with(node_labels_taints_done) NodeLabelsTaints local = { 0 };
        json_t *known = node("\"disk\":\"hdd\",\"team\":\"red\"", "", "disk=ssd", "a:NoSchedule");

        own(&local, "disk", "ssd");
        (void) json_object_del(json_object_get(json_object_get(known, "metadata"), "annotations"),
                               "mainstay.dev/own-taints");
        expect_patch(known, &local, "{\"labels\":{\"disk\":\"ssd\"}}");
}

TEST(former_local_label_is_removed_unless_it_was_changed)
{
        cleanup_with(node_labels_taints_done) NodeLabelsTaints local = { 0 };

        own(&local, "disk", "ssd");
        expect_patch(node("\"disk\":\"ssd\",\"old\":\"1\",\"taken\":\"theirs\"", "",
                          "disk=ssd,old=1,taken=ours", ""),
                     &local,
                     "{\"annotations\":{\"" LIST "\":\"disk=ssd\","
                     "\"mainstay.dev/own-taints\":null},\"labels\":{\"old\":null}}");
}

TEST(label_for_administrators_is_not_patched)
{
        cleanup_with(node_labels_taints_done) NodeLabelsTaints local = { 0 };
        cleanup_json json_t *labels = NULL;

        own(&local, "node-role.kubernetes.io/edge", "");
        own(&local, "disk", "ssd");
        labels = node_local_labels_to_json(&local);
        EXPECT_EQ(json_object_size(labels), 1);
        EXPECT_STREQ(json_string_value(json_object_get(labels, "disk")), "ssd");
}

TEST(unlisted_labels_are_external)
{
        expect_others(node("\"disk\":\"ssd\",\"team\":\"red\"", "", "disk=ssd", ""), "team=red ");
        expect_others(node("\"disk\":\"hdd\",\"bad key\":\"x\",\"v\":\"b d\",\"n\":7", "",
                           "disk=ssd", ""),
                      "disk=hdd ");
}

TEST(unlisted_taints_without_a_condition_are_external)
{
        expect_others(
                node("",
                     "{\"key\":\"a\",\"effect\":\"NoSchedule\"},"
                     "{\"key\":\"b\",\"value\":\"\",\"effect\":\"NoExecute\"},"
                     "{\"key\":\"c\",\"effect\":\"Odd\"},"
                     "{\"key\":\"node.kubernetes.io/not-ready\",\"effect\":\"NoExecute\"},"
                     "{\"key\":\"node.kubernetes.io/memory-pressure\",\"effect\":\"NoSchedule\"},"
                     "{\"key\":\"node.kubernetes.io/unschedulable\",\"effect\":\"NoSchedule\"},7",
                     "", "a:NoSchedule"),
                "b:NoExecute node.kubernetes.io/unschedulable:NoSchedule ");
}

TEST(removed_local_taint_is_no_longer_local)
{
        cleanup_with(node_labels_taints_done) NodeLabelsTaints local = { 0 };
        cleanup_json json_t *taints = NULL;

        own_taint(&local, "a=1:NoSchedule");
        own_taint(&local, "b:NoExecute");
        taints = node_local_taints_to_json(&local);
        EXPECT_EQ(json_array_size(taints), 2);
        expect_patch(node("", "{\"key\":\"b\",\"effect\":\"NoExecute\"}", "",
                          "a=1:NoSchedule,b:NoExecute"),
                     &local, "{\"annotations\":{\"mainstay.dev/own-taints\":\"b:NoExecute\"}}");
}

TEST(registered_node_lists_its_local_labels_and_taints)
{
        cleanup_with(node_labels_taints_done) NodeLabelsTaints local = { 0 };
        cleanup_json json_t *annotations = NULL, *labels = NULL;

        own(&local, "b", "2");
        own(&local, "a", "1");
        own_taint(&local, "t:NoSchedule");
        labels = node_local_labels_to_json(&local);
        EXPECT_EQ(json_object_size(labels), 2);
        annotations = node_local_annotations_to_json(&local);
        EXPECT_STREQ(json_string_value(json_object_get(annotations, LIST)), "a=1,b=2");
        EXPECT_STREQ(json_string_value(json_object_get(annotations, "mainstay.dev/own-taints")),
                     "t:NoSchedule");
}
