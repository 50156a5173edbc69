/* SPDX-License-Identifier: Apache-2.0 */
/* The policy of the DaemonSet controller: orphan pods, adoption, failed pods, rollbacks, overlap
 * warnings, checkpoints, and which DaemonSets are forgotten. */

#include "agent/daemonset/rules/rules.h"
#include "tests/unit/daemonset/rules-node.h"

#include <fcntl.h>
#include <unistd.h>

#define UID_A "11111111-1111-1111-1111-111111111111"
#define UID_B "22222222-2222-2222-2222-222222222222"
#define SURGE "  updateStrategy: {rollingUpdate: {maxSurge: 1, maxUnavailable: 0}}\n"

static DaemonSet *make_daemonset(const char *name, const char *uid) {
        return fake_set_new(name, uid, "d", "", "", "busybox");
}

static bool has_checkpoint(const char *uid) {
        char path[512];

        (void) snprintf(path, sizeof(path), "%s/daemonsets/%s", test_directory(), uid);
        return access(path, F_OK) == 0;
}

static size_t count_events(const FakeNode *node, const char *event) {
        size_t n = 0;

        strv_foreach(item, node->events)
                n += streq(*item, event);
        return n;
}

static const char *owner_uid_of(const FakePod *pod) {
        const OwnerReference *owner = object_controller(&pod->pod->metadata);

        return owner ? owner->uid : "";
}

static int count_set(const char *key, const char *json, void *context) {
        (*(size_t *) context)++;
        return 0;
}

static size_t count_listed_sets(FakeNode *node) {
        size_t n = 0;

        REQUIRE(daemonset_controller_each(node->controller, count_set, &n) == 0);
        return n;
}

static int claim_record(FakeNode *node, PodSourceKind kind) {
        const PodSource source = { .kind = kind };

        return daemonset_controller_claim_record(&source, node->pods[0].pod, node->controller);
}

static void expect_stop_reason(FakeNode *node, const char *expected) {
        const PodSource source = { .kind = POD_SOURCE_FILE };
        cleanup_free char *reason =
                daemonset_controller_explain_stop(&source, node->pods[0].pod, node->controller);

        EXPECT(!node->pods[0].desired);
        EXPECT_STREQ(reason, expected);
}

TEST(desired_daemonset_creates_one_pod)
{
        cleanup_with(daemonset_freep) DaemonSet *a = make_daemonset("a", UID_A);
        cleanup_with(fake_node_done) FakeNode node;

        fake_node_init(&node);
        fake_node_run(&node, (const DaemonSet *[]){ a, NULL });
        fake_node_run(&node, (const DaemonSet *[]){ a, NULL });
        EXPECT_EQ(node.n, 1);
        EXPECT_STREQ(owner_uid_of(&node.pods[0]), UID_A);
        EXPECT_EQ(node.pods[0].source, POD_SOURCE_FILE);
        EXPECT_EQ(count_events(&node, "SuccessfulCreate a"), 1);
        EXPECT_EQ(count_listed_sets(&node), 1);
        EXPECT(has_checkpoint(UID_A));
}

/* The scheduler of a cluster ignores pods that have terminated as well. */
TEST(pods_that_have_terminated_do_not_count_for_pod_affinity)
{
        static const char yaml[] =
                "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: b}\nspec:\n"
                "  selector: {matchLabels: {app: b}}\n  template:\n"
                "    metadata: {labels: {app: b}}\n    spec:\n"
                "      containers: [{name: c, image: busybox}]\n"
                "      affinity: {podAntiAffinity: "
                "{requiredDuringSchedulingIgnoredDuringExecution: "
                "[{topologyKey: host, labelSelector: {matchLabels: {app: d}}}]}}\n";
        static const PodPhase phases[] = { POD_RUNNING, POD_SUCCEEDED, POD_FAILED };
        cleanup_with(daemonset_freep) DaemonSet *a = make_daemonset("a", UID_A);
        cleanup_with(daemonset_freep) DaemonSet *b = fake_set_parse(yaml, UID_B);

        for (size_t i = 0; i < N_ELEMENTS(phases); i++) {
                cleanup_with(fake_node_done) FakeNode node;

                fake_node_init(&node);
                REQUIRE(string_map_set(&node.labels.labels, "host", "node1") == 0);
                fake_node_run(&node, (const DaemonSet *[]){ a, NULL });
                REQUIRE(node.n == 1);
                REQUIRE(daemonset_set_pod_owner(NULL, node.pods[0].pod) == 0);
                node.pods[0].status.phase = phases[i];
                REQUIRE(fake_node_sync(&node, (const DaemonSet *[]){ b, NULL }) == 0);
                EXPECT_EQ(node.n, phases[i] == POD_RUNNING ? 1 : 2);
        }
}

TEST(refused_pod_is_created_once_it_is_admitted)
{
        cleanup_with(daemonset_freep) DaemonSet *a = make_daemonset("a", UID_A);
        cleanup_with(fake_node_done) FakeNode node;

        fake_node_init(&node);
        node.refuses_pods = true;
        fake_node_run(&node, (const DaemonSet *[]){ a, NULL });
        fake_node_run(&node, (const DaemonSet *[]){ a, NULL });
        EXPECT_EQ(node.n, 0);
        EXPECT_EQ(count_events(&node, "PodSecurity a"), 1);
        node.refuses_pods = false;
        fake_node_run(&node, (const DaemonSet *[]){ a, NULL });
        EXPECT_EQ(node.n, 1);
        node.refuses_pods = true;
        fake_node_run(&node, (const DaemonSet *[]){ a, NULL });
        EXPECT_EQ(node.n, 1); /* a pod that exists was admitted */
        EXPECT_EQ(count_events(&node, "PodSecurity a"), 1);
}

TEST(refused_revision_leaves_the_old_pod_and_a_failed_pod_as_they_are)
{
        for (unsigned surge = 0; surge < 2; surge++) {
                cleanup_with(daemonset_freep) DaemonSet *a = make_daemonset("a", UID_A);
                cleanup_with(daemonset_freep) DaemonSet *changed =
                        fake_set_new("a", UID_A, "d", "", surge ? SURGE : "", "busybox:2");
                cleanup_free char *name = NULL;
                FakeNode node;

                fake_node_init(&node);
                fake_node_run(&node, (const DaemonSet *[]){ a, NULL });
                REQUIRE(node.n == 1);
                name = strdup(node.pods[0].pod->metadata.name);
                node.refuses_pods = true;
                fake_node_run(&node, (const DaemonSet *[]){ changed, NULL });
                fake_node_run(&node, (const DaemonSet *[]){ changed, NULL });
                REQUIRE(node.n == 1);
                EXPECT_STREQ(node.pods[0].pod->metadata.name, name);
                fake_node_run(&node, (const DaemonSet *[]){ a, NULL });
                node.pods[0].status.phase = POD_FAILED;
                fake_node_run(&node, (const DaemonSet *[]){ a, NULL });
                fake_node_run(&node, (const DaemonSet *[]){ a, NULL });
                REQUIRE(node.n == 1);
                EXPECT_EQ(node.pods[0].status.phase, POD_FAILED);
                fake_node_run(&node, (const DaemonSet *[]){ NULL });
                EXPECT_EQ(node.n, 0); /* the set was removed */
                fake_node_done(&node);
        }
}

TEST(removed_daemonset_is_forgotten_after_its_last_pod_is_gone)
{
        cleanup_with(daemonset_freep) DaemonSet *a = make_daemonset("a", UID_A);
        cleanup_with(fake_node_done) FakeNode node;

        fake_node_init(&node);
        fake_node_run(&node, (const DaemonSet *[]){ a, NULL });
        REQUIRE(fake_node_sync(&node, NULL) == 0);
        expect_stop_reason(&node, "DaemonSet default/a was removed");
        EXPECT_EQ(count_listed_sets(&node), 0);
        EXPECT(has_checkpoint(UID_A));
        fake_node_apply(&node);
        EXPECT_EQ(node.n, 0);
        fake_node_run(&node, NULL);
        EXPECT(!has_checkpoint(UID_A));
}

TEST(daemonset_is_not_forgotten_by_a_pass_that_runs_out_of_memory)
{
        cleanup_with(daemonset_freep) DaemonSet *a = make_daemonset("a", UID_A);
        cleanup_with(fake_node_done) FakeNode node;

        fake_node_init(&node);
        fake_node_run(&node, (const DaemonSet *[]){ a, NULL });
        node.has_no_memory = true;
        EXPECT_EQ(fake_node_sync(&node, NULL), -ENOMEM);
        EXPECT(has_checkpoint(UID_A));
        node.has_no_memory = false;
        fake_node_run(&node, (const DaemonSet *[]){ a, NULL });
        EXPECT_EQ(node.n, 1);
        EXPECT_EQ(count_events(&node, "SuccessfulCreate a"), 1);
}

TEST(orphan_pod_stays_desired_until_a_matching_daemonset_adopts_it)
{
        cleanup_with(daemonset_freep) DaemonSet *a = make_daemonset("a", UID_A);
        cleanup_with(daemonset_freep) DaemonSet *b = make_daemonset("b", UID_B);
        cleanup_with(fake_node_done) FakeNode node;
        cleanup_error Error error = ERROR_NULL;

        fake_node_init(&node);
        fake_node_run(&node, (const DaemonSet *[]){ a, NULL });
        REQUIRE(daemonset_controller_orphan_pods(node.controller, "default", "a", &error) == 0);
        fake_node_run(&node, (const DaemonSet *[]){ a, NULL }); /* its file is still there */
        EXPECT_EQ(node.n, 1);
        EXPECT_EQ(node.pods[0].source, POD_SOURCE_ORPHAN);
        EXPECT_STREQ(owner_uid_of(&node.pods[0]), "");
        fake_node_run(&node, NULL);
        EXPECT_EQ(node.pods[0].source, POD_SOURCE_ORPHAN);
        EXPECT(!has_checkpoint(UID_A));
        REQUIRE(fake_node_sync(&node, (const DaemonSet *[]){ b, NULL }) == 0);
        REQUIRE(node.pods[0].desired);
        EXPECT_EQ(node.pods[0].source, POD_SOURCE_FILE);
        EXPECT_STREQ(object_controller(&node.pods[0].desired->metadata)->uid, UID_B);
}

TEST(deleted_orphan_pod_is_no_longer_desired)
{
        cleanup_with(daemonset_freep) DaemonSet *a = make_daemonset("a", UID_A);
        cleanup_with(fake_node_done) FakeNode node;
        cleanup_error Error error = ERROR_NULL;

        fake_node_init(&node);
        fake_node_run(&node, (const DaemonSet *[]){ a, NULL });
        REQUIRE(daemonset_controller_orphan_pods(node.controller, "default", "a", &error) == 0);
        daemonset_controller_orphan_deleted(node.controller, "default",
                                            node.pods[0].pod->metadata.name);
        fake_node_run(&node, NULL);
        EXPECT_EQ(node.n, 0);
}

TEST(agent_that_finds_an_orphaning_daemonset_and_its_file_adopts_the_pods_again)
{
        cleanup_with(daemonset_freep) DaemonSet *a = make_daemonset("a", UID_A);
        cleanup_with(fake_node_done) FakeNode node;
        cleanup_error Error error = ERROR_NULL;

        fake_node_init(&node);
        fake_node_run(&node, (const DaemonSet *[]){ a, NULL });
        REQUIRE(daemonset_controller_orphan_pods(node.controller, "default", "a", &error) == 0);
        fake_node_start_agent(&node);
        EXPECT_EQ(claim_record(&node, POD_SOURCE_FILE), 1);
        fake_node_run(&node, (const DaemonSet *[]){ a, NULL });
        EXPECT_EQ(node.n, 1);
        EXPECT_EQ(node.pods[0].source, POD_SOURCE_FILE);
        EXPECT_STREQ(owner_uid_of(&node.pods[0]), UID_A);
}

TEST(restored_pod_is_claimed_by_its_daemonset_only)
{
        cleanup_with(daemonset_freep) DaemonSet *a = make_daemonset("a", UID_A);
        cleanup_with(daemonset_freep) DaemonSet *b = make_daemonset("b", UID_B);
        cleanup_with(fake_node_done) FakeNode node;

        fake_node_init(&node);
        fake_node_run(&node, (const DaemonSet *[]){ a, NULL });
        fake_node_start_agent(&node);
        REQUIRE(node.restored);
        EXPECT_STREQ(node.restored[0], "a.yaml a");
        EXPECT_EQ(claim_record(&node, POD_SOURCE_FILE), 1);
        REQUIRE(daemonset_set_pod_owner(b, node.pods[0].pod) == 0);
        EXPECT_EQ(claim_record(&node, POD_SOURCE_FILE), 0);
        REQUIRE(daemonset_set_pod_owner(NULL, node.pods[0].pod) == 0);
        EXPECT_EQ(claim_record(&node, POD_SOURCE_FILE), 0);
        EXPECT_EQ(claim_record(&node, POD_SOURCE_ORPHAN), 1);
}

TEST(damaged_checkpoint_is_set_aside_and_the_others_are_read)
{
        cleanup_with(daemonset_freep) DaemonSet *a = make_daemonset("a", UID_A);
        cleanup_with(daemonset_freep) DaemonSet *b = fake_set_new("b", UID_B, "b", "", "", "b");
        cleanup_with(fake_node_done) FakeNode node;
        char path[512];
        int fd;

        fake_node_init(&node);
        fake_node_run(&node, (const DaemonSet *[]){ a, b, NULL });
        (void) snprintf(path, sizeof(path), "%s/daemonsets/%s", test_directory(), UID_A);
        fd = open(path, O_WRONLY | O_CLOEXEC);
        REQUIRE(fd >= 0 && pwrite(fd, "damage", 6, 4) == 6);
        close(fd);
        fake_node_start_agent(&node);
        EXPECT(!has_checkpoint(UID_A));
        REQUIRE(node.restored && node.restored[0]);
        EXPECT_STREQ(node.restored[0], "a.yaml b");
        EXPECT(!node.restored[1]);
}

TEST(failed_pod_is_replaced_at_once_and_then_after_its_back_off)
{
        cleanup_with(daemonset_freep) DaemonSet *a = make_daemonset("a", UID_A);
        cleanup_with(fake_node_done) FakeNode node;
        const DaemonSet *sets[] = { a, NULL };

        fake_node_init(&node);
        fake_node_run(&node, sets);
        node.pods[0].status.phase = POD_FAILED;
        REQUIRE(fake_node_sync(&node, sets) == 0);
        expect_stop_reason(&node, "it has terminated, and DaemonSet default/a replaces it");
        fake_node_apply(&node);
        EXPECT_EQ(node.n, 0);
        EXPECT_EQ(count_events(&node, "FailedDaemonPod a"), 1);
        fake_node_run(&node, sets);
        EXPECT_EQ(node.n, 1);
        node.pods[0].status.phase = POD_FAILED;
        fake_node_run(&node, sets);
        EXPECT_EQ(node.n, 1); /* within the back-off of 1 s */
        fake_node_advance(&node, 2);
        fake_node_run(&node, sets);
        EXPECT_EQ(node.n, 0);
        EXPECT_EQ(count_events(&node, "FailedDaemonPod a"), 2);
}

TEST(revision_that_misses_its_progress_deadline_is_rolled_back)
{
        static const char deadline[] = "mainstay.dev/progress-deadline-seconds: \"4\"";
        cleanup_with(daemonset_freep) DaemonSet *good =
                fake_set_new("a", UID_A, "d", deadline, SURGE, "good");
        cleanup_with(daemonset_freep) DaemonSet *bad =
                fake_set_new("a", UID_A, "d", deadline, SURGE, "bad");
        cleanup_with(fake_node_done) FakeNode node;

        fake_node_init(&node);
        fake_node_run(&node, (const DaemonSet *[]){ good, NULL });
        fake_node_advance(&node, 3);
        fake_node_run(&node, (const DaemonSet *[]){ good, NULL });
        node.makes_ready = false;
        fake_node_run(&node, (const DaemonSet *[]){ bad, NULL });
        EXPECT_EQ(node.n, 2);
        fake_node_advance(&node, 3);
        fake_node_run(&node, (const DaemonSet *[]){ bad, NULL });
        EXPECT_EQ(node.n, 2);
        EXPECT_EQ(count_events(&node, "DaemonSetRollback a"), 0);
        fake_node_advance(&node, 2);
        fake_node_run(&node, (const DaemonSet *[]){ bad, NULL });
        EXPECT_EQ(count_events(&node, "DaemonSetRollback a"), 1);
        REQUIRE(node.n == 1);
        EXPECT_STREQ(node.pods[0].pod->spec.containers.items[0].image, "good");
        fake_node_start_agent(&node); /* the rollback holds across a restart */
        fake_node_run(&node, (const DaemonSet *[]){ bad, NULL });
        REQUIRE(node.n == 1);
        EXPECT_STREQ(node.pods[0].pod->spec.containers.items[0].image, "good");
}

TEST(pods_that_a_shutdown_of_the_machine_stops_are_not_replaced)
{
        cleanup_with(daemonset_freep) DaemonSet *set =
                fake_set_new("a", UID_A, "d", "", SURGE, "one");
        cleanup_with(fake_node_done) FakeNode node;

        fake_node_init(&node);
        fake_node_run(&node, (const DaemonSet *[]){ set, NULL });
        REQUIRE(node.n == 1);
        node.is_shutting_down = true;
        node.pods[0].status = (PodStatus){ .phase = POD_FAILED };
        for (unsigned i = 0; i < 3; i++) {
                fake_node_advance(&node, 20 * 60);
                fake_node_run(&node, (const DaemonSet *[]){ set, NULL });
                REQUIRE(node.n == 1);
                EXPECT_EQ(node.pods[0].status.phase, POD_FAILED);
        }
        EXPECT_EQ(count_events(&node, "FailedDaemonPod a"), 0);
        EXPECT_EQ(count_events(&node, "SuccessfulDelete a"), 0);
}

TEST(progress_deadline_does_not_pass_while_the_machine_shuts_down)
{
        static const char deadline[] = "mainstay.dev/progress-deadline-seconds: \"4\"";
        cleanup_with(daemonset_freep) DaemonSet *good =
                fake_set_new("a", UID_A, "d", deadline, SURGE, "good");
        cleanup_with(daemonset_freep) DaemonSet *next =
                fake_set_new("a", UID_A, "d", deadline, SURGE, "next");
        cleanup_with(fake_node_done) FakeNode node;

        fake_node_init(&node);
        fake_node_run(&node, (const DaemonSet *[]){ good, NULL });
        fake_node_advance(&node, 3);
        fake_node_run(&node, (const DaemonSet *[]){ good, NULL });
        node.makes_ready = false;
        fake_node_run(&node, (const DaemonSet *[]){ next, NULL });
        EXPECT_EQ(node.n, 2);
        node.is_shutting_down = true;
        fake_node_advance(&node, 10);
        fake_node_run(&node, (const DaemonSet *[]){ next, NULL });
        EXPECT_EQ(node.n, 2);
        EXPECT_EQ(count_events(&node, "DaemonSetRollback a"), 0);
}

TEST(undone_rollout_holds_across_a_restart_of_the_agent)
{
        cleanup_with(daemonset_freep) DaemonSet *one =
                fake_set_new("a", UID_A, "d", "", SURGE, "one");
        cleanup_with(daemonset_freep) DaemonSet *two =
                fake_set_new("a", UID_A, "d", "", SURGE, "two");
        cleanup_with(fake_node_done) FakeNode node;
        cleanup_error Error error = ERROR_NULL;

        fake_node_init(&node);
        EXPECT_EQ(daemonset_controller_undo_rollout(node.controller, "default", "a", 0, &error),
                  -ENOENT);
        fake_node_run(&node, (const DaemonSet *[]){ one, NULL });
        fake_node_run(&node, (const DaemonSet *[]){ two, NULL });
        fake_node_run(&node, (const DaemonSet *[]){ two, NULL });
        EXPECT_EQ(daemonset_controller_undo_rollout(node.controller, "default", "a", 0, NULL), 0);
        EXPECT_EQ(daemonset_controller_undo_rollout(node.controller, "default", "a", 3, NULL), 1);
        fake_node_start_agent(&node);
        fake_node_run(&node, (const DaemonSet *[]){ two, NULL });
        fake_node_run(&node, (const DaemonSet *[]){ two, NULL });
        REQUIRE(node.n == 1);
        EXPECT_STREQ(node.pods[0].pod->spec.containers.items[0].image, "one");
}

TEST(changed_selector_keeps_the_pods_as_they_are)
{
        cleanup_with(daemonset_freep) DaemonSet *a = make_daemonset("a", UID_A);
        cleanup_with(daemonset_freep) DaemonSet *changed =
                fake_set_new("a", UID_A, "other", "", "", "busybox");
        cleanup_with(fake_node_done) FakeNode node;

        fake_node_init(&node);
        fake_node_run(&node, (const DaemonSet *[]){ a, NULL });
        fake_node_run(&node, (const DaemonSet *[]){ changed, NULL });
        EXPECT_EQ(node.n, 1);
        EXPECT_STREQ(string_map_get(&node.pods[0].pod->metadata.labels, "app"), "d");
}

TEST(overlapping_selectors_cause_a_warning_while_both_daemonsets_are_desired)
{
        cleanup_with(daemonset_freep) DaemonSet *a = make_daemonset("a", UID_A);
        cleanup_with(daemonset_freep) DaemonSet *b = make_daemonset("b", UID_B);
        cleanup_with(fake_node_done) FakeNode node;
        char *const *warnings;

        fake_node_init(&node);
        fake_node_run(&node, (const DaemonSet *[]){ a, b, NULL });
        warnings = daemonset_controller_warnings(node.controller);
        REQUIRE(warnings && warnings[0]);
        EXPECT_STREQ(warnings[0], "a.yaml: daemonset default/a and daemonset default/b of a.yaml: "
                                  "one's selector matches the pods of the other");
        EXPECT(!warnings[1]);
        fake_node_run(&node, (const DaemonSet *[]){ a, NULL });
        fake_node_run(&node, (const DaemonSet *[]){ a, NULL });
        warnings = daemonset_controller_warnings(node.controller);
        EXPECT(!warnings || !warnings[0]);
}
