/* SPDX-License-Identifier: Apache-2.0 */
/* Metadata of a server's objects, and documents that are not objects. */

#include "agent/kubeclient/object-summary.h"

#include "common/cleanup.h"
#include "tests/test.h"

static int read_json(const char *json, KubeObjectSummary *ret) {
        return kube_object_summary_parse(json, strlen(json), ret, NULL);
}

TEST(object_is_identified_by_its_metadata)
{
        cleanup_with(kube_object_summary_done) KubeObjectSummary m = { 0 };

        REQUIRE(read_json("{\"metadata\":{\"name\":\"p\",\"namespace\":\"d\",\"uid\":\"u\","
                          "\"resourceVersion\":\"7\",\"annotations\":{\"kubernetes.io/"
                          "config.mirror\":"
                          "\"h\"}},\"status\":{\"phase\":\"Running\"}}",
                          &m) == 0);
        EXPECT_STREQ(m.name, "p");
        EXPECT_STREQ(m.namespace, "d");
        EXPECT_STREQ(m.uid, "u");
        EXPECT_STREQ(m.resource_version, "7");
        EXPECT_STREQ(m.mirror_hash, "h");
        EXPECT_STREQ(m.phase, "Running");
        EXPECT_STREQ(m.status, "{\"phase\":\"Running\"}");
        EXPECT(!m.is_deleting);
        EXPECT_EQ(m.grace_seconds, -1);
}

TEST(conditions_and_generation_are_read)
{
        cleanup_with(kube_object_summary_done) KubeObjectSummary m = { 0 };
        cleanup_with(string_map_done) StringMap conditions = { 0 };

        REQUIRE(read_json(
                        "{\"metadata\":{\"name\":\"p\",\"uid\":\"u\",\"generation\":4},\"status\":"
                        "{\"conditions\":[{\"type\":\"Warm\",\"status\":\"True\"},7,"
                        "{\"type\":\"Cold\"},{\"type\":\"Dry\",\"status\":\"Unknown\"}]}}",
                        &m) == 0);
        EXPECT_EQ(m.generation, 4);
        REQUIRE(kube_object_summary_conditions(&m, &conditions) == 0);
        EXPECT_EQ(conditions.n, 2);
        EXPECT_STREQ(string_map_get(&conditions, "Warm"), "True");
        EXPECT_STREQ(string_map_get(&conditions, "Dry"), "Unknown");
}

TEST(deletion_has_its_grace_period)
{
        cleanup_with(kube_object_summary_done) KubeObjectSummary m = { 0 };

        REQUIRE(read_json("{\"metadata\":{\"name\":\"p\",\"uid\":\"u\",\"deletionTimestamp\":"
                          "\"2026-01-01T00:00:00Z\",\"deletionGracePeriodSeconds\":0}}",
                          &m) == 0);
        EXPECT(m.is_deleting);
        EXPECT_EQ(m.grace_seconds, 0);
        EXPECT_STREQ(m.namespace, "");
        EXPECT_STREQ(m.status, NULL);
}

TEST(invalid_object_is_an_error_without_a_leak)
{
        static const char *const bad[] = {
                "",
                "null",
                "[]",
                "7",
                "{",
                "{\"metadata\":7}",
                "{}",
                "{\"metadata\":{\"name\":\"p\"}}",
                "{\"metadata\":{\"uid\":\"u\"}}",
                "{\"metadata\":{\"name\":7,\"uid\":[]}}",
                "{\"metadata\":{\"name\":\"\\ud800\",\"uid\":\"u\"}}",
        };

        for (size_t i = 0; i < N_ELEMENTS(bad); i++) {
                KubeObjectSummary m = { 0 };

                EXPECT_EQ(read_json(bad[i], &m), -EBADMSG);
                EXPECT(!m.name);
        }
}
