/* SPDX-License-Identifier: Apache-2.0 */
/* The API server's object with a name: watch events that contradict responses, and doubtful
 * lists. */

#include "agent/apiserver/remote-pod.h"

#include "common/cleanup.h"
#include "tests/test.h"

static void update(RemotePod *remote, const char *uid, const char *phase) {
        KubeObjectSummary metadata = { .name = strdup("web"),
                                       .namespace = strdup("default"),
                                       .uid = strdup(uid),
                                       .phase = phase ? strdup(phase) : NULL };

        remote_pod_update_take(remote, &metadata);
}

static void respond(RemotePod *remote, unsigned watch_events, const char *uid) {
        char json[128];
        KubeObjectSummary metadata = { 0 };
        int n = snprintf(json, sizeof(json),
                         "{\"metadata\":{\"name\":\"web\",\"namespace\":\"default\",\"uid\":"
                         "\"%s\",\"resourceVersion\":\"9\"}}",
                         uid);

        REQUIRE(kube_object_summary_parse(json, (size_t) n, &metadata, NULL) >= 0);
        remote_pod_apply_response_take(remote, watch_events, &metadata);
}

TEST(response_creates_the_object)
{
        cleanup_with(remote_pod_done) RemotePod remote = { 0 };

        EXPECT(!remote_pod_object(&remote));
        respond(&remote, 0, "u1");
        REQUIRE(remote_pod_object(&remote));
        EXPECT_STREQ(remote_pod_object(&remote)->uid, "u1");
}

TEST(response_is_ignored_if_the_watch_has_reported_the_object_since)
{
        cleanup_with(remote_pod_done) RemotePod remote = { 0 };

        update(&remote, "u1", NULL);
        remote.watch_events = 3;
        respond(&remote, 2, "u1");
        EXPECT(!remote.metadata.resource_version);
        respond(&remote, 3, "u1");
        EXPECT_STREQ(remote.metadata.resource_version, "9");
}

TEST(response_that_is_newer_than_the_watch_is_used)
{
        static const struct {
                char version[8];
                const char *expected;
        } cases[] = { { "8", "9" }, { "10", "10" }, { "opaque", "opaque" } };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                cleanup_with(remote_pod_done) RemotePod remote = { 0 };

                update(&remote, "u1", NULL);
                remote.metadata.resource_version = strdup(cases[i].version);
                remote.watch_events = 3;
                respond(&remote, 2, "u1");
                EXPECT_STREQ(remote.metadata.resource_version, cases[i].expected);
        }
}

TEST(event_of_a_state_before_that_of_a_response_is_outdated)
{
        static struct {
                char uid[4], version[8];
                bool is_outdated;
        } cases[] = { { "u1", "8", true },
                      { "u1", "9", false },
                      { "u1", "10", false },
                      { "u2", "8", false },
                      { "u1", "opaque", false } };
        cleanup_with(remote_pod_done) RemotePod remote = { 0 };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                KubeObjectSummary event = { .uid = cases[i].uid,
                                            .resource_version = cases[i].version };

                remote_pod_forget(&remote);
                EXPECT(!remote_pod_is_event_outdated(&remote, &event));
                respond(&remote, 0, "u1");
                EXPECT_EQ(remote_pod_is_event_outdated(&remote, &event), cases[i].is_outdated);
        }
}

TEST(response_does_not_bring_back_a_deleted_object)
{
        cleanup_with(remote_pod_done) RemotePod remote = { 0 };

        update(&remote, "u1", NULL);
        remote_pod_remove(&remote, "u1");
        EXPECT(!remote.exists);
        respond(&remote, 0, "u1");
        EXPECT(!remote.exists);
        respond(&remote, 0, "u2");
        EXPECT(remote.exists);
}

TEST(deletion_of_an_older_object_keeps_the_next_one)
{
        cleanup_with(remote_pod_done) RemotePod remote = { 0 };

        update(&remote, "u2", NULL);
        remote_pod_remove(&remote, "u1");
        REQUIRE(remote_pod_object(&remote));
        EXPECT_STREQ(remote_pod_object(&remote)->uid, "u2");
}

TEST(object_that_a_response_showed_as_deleted_does_not_exist_until_it_is_listed_again)
{
        cleanup_with(remote_pod_done) RemotePod remote = { 0 };

        update(&remote, "u1", NULL);
        EXPECT_EQ(remote_pod_mark_deleted(&remote), 0);
        EXPECT(!remote_pod_object(&remote));
        remote_pod_clear_deleted(&remote);
        EXPECT(remote_pod_object(&remote));
}

TEST(terminal_phase_means_that_the_pod_has_terminated)
{
        static const struct {
                const char *phase;
                bool has_terminated;
        } cases[] = { { NULL, false },
                      { "Pending", false },
                      { "Running", false },
                      { "Succeeded", true },
                      { "Failed", true } };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                cleanup_with(remote_pod_done) RemotePod remote = { 0 };

                EXPECT(!remote_pod_has_terminated(&remote));
                update(&remote, "u1", cases[i].phase);
                EXPECT_EQ(remote_pod_has_terminated(&remote), cases[i].has_terminated);
        }
}

TEST(list_that_omits_more_than_half_of_the_bound_pods_is_suspicious)
{
        static const struct {
                unsigned bound, missing;
                bool is_doubtful;
        } cases[] = { { 0, 0, false }, { 1, 0, false }, { 1, 1, true },   { 2, 1, false },
                      { 2, 2, true },  { 3, 2, true },  { 10, 5, false }, { 10, 6, true } };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++)
                EXPECT_EQ(pod_list_is_doubtful(cases[i].bound, cases[i].missing),
                          cases[i].is_doubtful);
}
