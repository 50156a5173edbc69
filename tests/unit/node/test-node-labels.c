/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/node/node-labels.h"

#include "agent/manifest/manifest.h"
#include "agent/model/match.h"
#include "agent/model/pod.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "tests/test.h"

#include <fcntl.h>

/* ---- a node with its own configuration ---- */

static SteadyClock test_clock;

static char *write_config(const char *text) {
        char *path = path_join(test_directory(), "config.yaml");
        cleanup_close int fd =
                path ? open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644) : -EBADF;

        REQUIRE(fd >= 0 && write_all(fd, text, strlen(text)) >= 0);
        return path;
}

static Config read_config(const char *text) {
        cleanup_free char *path = write_config(text);
        Config config = { 0 };
        char **warnings = NULL;

        REQUIRE(kubelet_config_load(path, &config, &warnings, NULL) >= 0);
        for (char **warning = warnings; warning && *warning; warning++)
                free(*warning);
        free(warnings);
        return config;
}

static MergedNodeLabels load_node(const Config *config, bool is_joined) {
        MergedNodeLabels node = { .node_name = "node1",
                                  .hostname = "host1",
                                  .state_dir = test_directory(),
                                  .clock = &test_clock };

        test_clock = steady_clock_start();
        REQUIRE(node_labels_load(&node, config, is_joined) >= 0);
        return node;
}

static const char *label(const MergedNodeLabels *node, const char *key) {
        return strna(string_map_get(&node->effective.labels, key));
}

/* "a=b:NoSchedule c:NoExecute " */
static char *taints(const NodeLabelsTaints *node) {
        char *text = NULL, buffer[TAINT_SIZE];
        size_t length;
        FILE *out = open_memstream(&text, &length);

        REQUIRE(out);
        for (size_t i = 0; i < node->taints.n; i++)
                fprintf(out, "%s ", taint_format(&node->taints.items[i], buffer));
        REQUIRE(fclose(out) == 0);
        return text;
}

#define EXPECT_TAINTS(node, expected)                    \
        do {                                             \
                cleanup_free char *text_ = taints(node); \
                EXPECT_STREQ(text_, expected);           \
        } while (0)

/* The labels and taints that other clients have set on the Node. */
static NodeLabelsTaints make_external(const char *key, const char *value, const char *taint) {
        NodeLabelsTaints external = { 0 };

        if (key)
                REQUIRE(string_map_set(&external.labels, key, value) >= 0);
        external.taints.items = calloc(1, sizeof(Taint));
        REQUIRE(external.taints.items);
        if (taint) {
                cleanup_free char *copy = strdup(taint);

                REQUIRE(copy && taint_parse(copy, external.taints.items, NULL) >= 0);
                external.taints.n = 1;
        }
        return external;
}

static const char with_labels[] =
        "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
        "registerWithTaints: [{key: dedicated, value: gpu, effect: NoSchedule}]\n"
        "mainstay: {nodeLabels: {role: edge, kubernetes.io/os: other}}\n";

TEST(configured_labels_override_well_known_labels)
{
        Config config = read_config(with_labels);
        MergedNodeLabels node = load_node(&config, false);

        EXPECT_STREQ(node.effective.name, "node1");
        EXPECT_STREQ(label(&node, "role"), "edge");
        EXPECT_STREQ(label(&node, "kubernetes.io/os"), "other");
        EXPECT_STREQ(label(&node, "kubernetes.io/hostname"), "host1");
        EXPECT_TAINTS(&node.effective, "dedicated=gpu:NoSchedule ");
        node_labels_done(&node);
        config_done(&config);
}

TEST(external_labels_and_taints_are_added_and_do_not_replace_local_ones)
{
        Config config = read_config(with_labels);
        MergedNodeLabels node = load_node(&config, true);
        NodeLabelsTaints zone = make_external("zone", "a", "dedicated=other:NoSchedule");
        NodeLabelsTaints role = make_external("role", "core", "sick:NoExecute");
        NodeLabelsTaints none = make_external(NULL, NULL, NULL);

        EXPECT_EQ(node_labels_set_external(&node, &zone), 1);
        EXPECT_STREQ(label(&node, "zone"), "a");
        EXPECT_TAINTS(&node.effective, "dedicated=gpu:NoSchedule ");
        EXPECT_EQ(node_labels_set_external(&node, &zone), 0);
        EXPECT_EQ(node_labels_set_external(&node, &role), 1);
        EXPECT_STREQ(label(&node, "role"), "edge");
        EXPECT_STREQ(label(&node, "zone"), "");
        EXPECT_TAINTS(&node.effective, "dedicated=gpu:NoSchedule sick:NoExecute ");
        EXPECT_EQ(node_labels_set_external(&node, &none), 1);
        EXPECT_TAINTS(&node.effective, "dedicated=gpu:NoSchedule ");
        EXPECT_TAINTS(&node.local, "dedicated=gpu:NoSchedule ");
        node_labels_taints_done(&zone);
        node_labels_taints_done(&role);
        node_labels_taints_done(&none);
        node_labels_done(&node);
        config_done(&config);
}

TEST(external_labels_are_kept_for_an_agent_that_joins_again)
{
        Config config = { 0 };
        MergedNodeLabels node = load_node(&config, true);
        NodeLabelsTaints zone = make_external("zone", "a", "sick:NoSchedule");

        EXPECT_EQ(node_labels_set_external(&node, &zone), 1);
        node_labels_taints_done(&zone);
        node_labels_done(&node);
        node = load_node(&config, true);
        EXPECT_STREQ(label(&node, "zone"), "a");
        EXPECT_TAINTS(&node.effective, "sick:NoSchedule ");
        node_labels_done(&node);
        node = load_node(&config, false);
        EXPECT_STREQ(label(&node, "zone"), "");
        EXPECT_TAINTS(&node.effective, "");
        node_labels_done(&node);
}

TEST(conditions_are_taints_while_they_hold)
{
        Config config = { 0 };
        MergedNodeLabels node = load_node(&config, false);

        EXPECT_EQ(node_labels_set_conditions(&node, NODE_CONDITION_BIT(0)), 1);
        EXPECT_EQ(node.effective.taints.n, 1);
        EXPECT_STREQ(node.effective.taints.items[0].key, node_conditions[0].taint);
        EXPECT_EQ(node.effective.taints.items[0].effect, TAINT_NO_SCHEDULE);
        EXPECT_EQ(node_labels_set_conditions(&node, NODE_CONDITION_BIT(0)), 0);
        EXPECT_EQ(node_labels_set_conditions(&node, 0), 1);
        EXPECT_EQ(node.effective.taints.n, 0);
        node_labels_done(&node);
}

TEST(a_noexecute_taint_keeps_the_time_when_it_was_first_seen)
{
        static const char tainted[] =
                "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
                "registerWithTaints: [{key: sick, effect: NoExecute}]\n";
        static const char past[] = "2020-01-02T03:04:05Z";
        Config config = read_config(tainted);
        MergedNodeLabels node = load_node(&config, true);
        NodeLabelsTaints external = make_external(NULL, NULL, "ill:NoExecute");

        REQUIRE(node.effective.taints.n == 1 && node.effective.taints.items[0].time_added);
        external.taints.items[0].time_added = strdup(past);
        EXPECT_EQ(node_labels_set_external(&node, &external), 1);
        REQUIRE(node.effective.taints.n == 2);
        EXPECT_STREQ(node.effective.taints.items[1].time_added, past);
        /* After a restart of the agent, the server does not report the time any more, but the agent
         * has stored it. */
        node_labels_done(&node);
        node = load_node(&config, true);
        free(external.taints.items[0].time_added);
        external.taints.items[0].time_added = NULL;
        (void) node_labels_set_external(&node, &external);
        REQUIRE(node.effective.taints.n == 2);
        EXPECT_STREQ(node.effective.taints.items[1].time_added, past);
        node_labels_taints_done(&external);
        node_labels_done(&node);
        config_done(&config);
}

static int reload(MergedNodeLabels *node, const char *path, const Config *config) {
        return node_labels_reload(node, &(ConfigFiles){ .file = path, .needs_file = true }, config,
                                  NULL);
}

TEST(a_configuration_that_is_broken_or_removed_changes_nothing)
{
        Config config = read_config(with_labels);
        MergedNodeLabels node = load_node(&config, false);
        cleanup_free char *path = write_config("kind: [\n");

        EXPECT(reload(&node, path, &config) < 0);
        EXPECT_STREQ(label(&node, "role"), "edge");
        REQUIRE(unlink(path) >= 0);
        EXPECT_EQ(reload(&node, path, &config), -ENOENT);
        EXPECT_STREQ(label(&node, "role"), "edge");
        EXPECT_TAINTS(&node.effective, "dedicated=gpu:NoSchedule ");
        node_labels_done(&node);
        config_done(&config);
}

TEST(a_changed_configuration_replaces_the_local_labels_only)
{
        Config config = read_config(with_labels);
        MergedNodeLabels node = load_node(&config, true);
        NodeLabelsTaints zone = make_external("zone", "a", NULL);
        cleanup_free char *path = NULL;

        EXPECT_EQ(node_labels_set_external(&node, &zone), 1);
        path = write_config(
                "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
                "mainstay: {nodeLabels: {role: core}}\n");
        EXPECT_EQ(reload(&node, path, &config), 1);
        EXPECT_STREQ(label(&node, "role"), "core");
        EXPECT_STREQ(label(&node, "kubernetes.io/os"), "linux");
        EXPECT_STREQ(label(&node, "zone"), "a");
        EXPECT_TAINTS(&node.effective, "");
        EXPECT_EQ(reload(&node, path, &config), 0);
        node_labels_taints_done(&zone);
        node_labels_done(&node);
        config_done(&config);
}
