/* SPDX-License-Identifier: Apache-2.0 */
/* Claiming: which pods belong to a DaemonSet, and the counts of its status. */

#include "agent/daemonset/claimed-pods.h"
#include "common/cleanup.h"
#include "tests/test.h"

#define UID_A "11111111-1111-1111-1111-111111111111"

static Pod make_pod(const char *owner_uid, const char *app) {
        Pod pod = { .metadata.namespace = strdup("default") };
        DaemonSet owner = { .metadata = { .name = strdup("a"), .uid = strdup(owner_uid) } };

        REQUIRE(string_map_set(&pod.metadata.labels, "app", app) == 0);
        REQUIRE(string_map_set(&pod.metadata.labels, revision_hash_label, "hash") == 0);
        REQUIRE(daemonset_set_pod_owner(owner_uid[0] ? &owner : NULL, &pod) == 0);
        free(owner.metadata.name);
        free(owner.metadata.uid);
        return pod;
}

/* Returns the number of claimed pods (0 or 1) if a DaemonSet from a file, with the selector app=d,
 * looks for one pod from this source. */
static size_t count_claimed_by(bool adopts_orphans, ObjectSource source, const char *owner_uid,
                               const char *app, bool is_orphan, bool is_terminating) {
        static char namespace[] = "default", name[] = "a", uid[] = UID_A, key[] = "app",
                    value[] = "d";
        KeyValue label = { key, value };
        LabelSelector selector = { .match_labels = { &label, 1 } };
        const DaemonSet set = { .metadata = { .namespace = namespace,
                                              .name = name,
                                              .uid = uid,
                                              .source = OBJECT_SOURCE_FILE },
                                .spec.selector = &selector };
        const SteadyClock clock = steady_clock_start();
        PodReadyTime ready = { 0 };
        const PodClaim claim = { &set, "hash", &clock, &ready, adopts_orphans };
        cleanup_with(observed_pods_done) ObservedPods observed = { 0 };
        cleanup_with(claimed_pods_done) ClaimedPods claimed = { 0 };
        const PodStatus status = { .deletion_time = is_terminating };
        Pod pod = make_pod(owner_uid, app);

        pod.metadata.source = source;
        if (source == OBJECT_SOURCE_APISERVER)
                REQUIRE(string_map_set(&pod.metadata.annotations, pod_source_annotation, "api") ==
                        0);
        REQUIRE(observed_pods_add(&observed, &pod, &status, is_orphan) == 0);
        REQUIRE(claim_daemonset_pods(&claim, &observed, &claimed) == 0);
        schema_done(&pod_schema, &pod);
        return claimed.n;
}

static size_t count_claimed(const char *owner_uid, const char *app, bool is_orphan,
                            bool is_terminating) {
        return count_claimed_by(true, OBJECT_SOURCE_FILE, owner_uid, app, is_orphan,
                                is_terminating);
}

TEST(daemonset_claims_no_pod_of_another_source)
{
        for (ObjectSource source = 0; source < N_OBJECT_SOURCES; source++) {
                bool is_own = source == OBJECT_SOURCE_FILE;

                EXPECT_EQ(count_claimed_by(true, source, "", "d", true, false), is_own);
                /* The UID of a set in a manifest is computed from its name, regardless of its
                 * source. */
                EXPECT_EQ(count_claimed_by(true, source, UID_A, "d", false, false), is_own);
        }
}

TEST(daemonset_of_an_api_server_adopts_no_orphans)
{
        EXPECT_EQ(count_claimed_by(false, OBJECT_SOURCE_FILE, "", "d", true, false), 0);
        EXPECT_EQ(count_claimed_by(false, OBJECT_SOURCE_FILE, UID_A, "d", false, false), 1);
}

TEST(daemonset_claims_the_pods_that_it_owns_whatever_their_labels)
{
        EXPECT_EQ(count_claimed(UID_A, "d", false, false), 1);
        EXPECT_EQ(count_claimed(UID_A, "changed", false, false), 1);
        EXPECT_EQ(count_claimed(UID_A, "d", false, true), 1);
        EXPECT_EQ(count_claimed("another", "d", false, false), 0);
}

TEST(daemonset_adopts_matching_orphan_pods_that_do_not_terminate)
{
        EXPECT_EQ(count_claimed("", "d", true, false), 1);
        EXPECT_EQ(count_claimed("", "d", true, true), 0);
        EXPECT_EQ(count_claimed("", "changed", true, false), 0);
        EXPECT_EQ(count_claimed("", "d", false, false), 0); /* a pod of a file */
}

TEST(oldest_pod_is_the_current_one_and_available_after_min_ready_seconds)
{
        static const uint64_t second = USEC_PER_SEC;
        const DaemonSet set = { .spec.min_ready_seconds = { true, 10 } };
        DaemonSetPodState pods[] = {
                { .is_current = true, .start_time = 50 * second },
                { .is_ready = true, .ready_since = 20 * second, .start_time = 10 * second },
                { .is_ready = true, .is_terminating = true, .start_time = second },
        };
        const ClaimedPods claimed = { .pods = pods, .n = N_ELEMENTS(pods) };
        DaemonSetPodCounts counts = count_claimed_pods(&set, &claimed, 29 * second);

        EXPECT_EQ(counts.n_current, 2);
        EXPECT_EQ(counts.n_ready, 1);
        EXPECT_EQ(counts.n_updated, 0);
        EXPECT_EQ(counts.n_available, 0);
        EXPECT_EQ(count_claimed_pods(&set, &claimed, 30 * second).n_available, 1);
}

TEST(stamp_of_the_current_pod_is_translated_once)
{
        static char namespace[] = "default", name[] = "a", uid[] = UID_A;
        LabelSelector selector = { 0 };
        const DaemonSet set = { .metadata = { .namespace = namespace,
                                              .name = name,
                                              .uid = uid,
                                              .source = OBJECT_SOURCE_FILE },
                                .spec.selector = &selector };
        SteadyClock clock = steady_clock_start();
        PodReadyTime ready = { 0 };
        const PodClaim claim = { &set, "hash", &clock, &ready, true };
        PodStatus status = { .phase = POD_RUNNING };
        Pod pod = make_pod(UID_A, "d");
        uint64_t since = 0;

        pod.metadata.source = OBJECT_SOURCE_FILE;
        status.conditions[CONDITION_READY] =
                (PodCondition){ .is_true = true, .last_transition = 5 };
        for (unsigned i = 0; i < 2; i++) {
                cleanup_with(observed_pods_done) ObservedPods observed = { 0 };
                cleanup_with(claimed_pods_done) ClaimedPods claimed = { 0 };

                REQUIRE(observed_pods_add(&observed, &pod, &status, false) == 0);
                REQUIRE(claim_daemonset_pods(&claim, &observed, &claimed) == 0);
                REQUIRE(claimed.n == 1);
                if (i > 0)
                        EXPECT_EQ(claimed.pods[0].ready_since, since);
                since = claimed.pods[0].ready_since;
                clock.offset += USEC_PER_SEC; /* the machine's clock is set forward */
        }
        schema_done(&pod_schema, &pod);
}
