/* SPDX-License-Identifier: Apache-2.0 */
/* Patches of a pod's status: what is said, and what is left to others. */

#include "agent/kubeclient/pod-status-patch.h"

#include "common/cleanup.h"
#include "tests/test.h"

static void expect_patch(const char *told, const char *ours, const char *expected) {
        cleanup_free char *patch = NULL;
        int r = kube_pod_status_patch("u-1", told, ours, &patch);

        EXPECT_EQ(r, expected ? 1 : 0);
        EXPECT_STREQ(patch, expected);
}

TEST(what_the_server_has_already_is_not_said_again)
{
        expect_patch("{\"phase\":\"Running\",\"qosClass\":\"BestEffort\"}",
                     "{\"phase\":\"Running\",\"qosClass\":\"BestEffort\"}", NULL);
        expect_patch(
                "{\"phase\":\"Running\",\"message\":\"\",\"containerStatuses\":[{\"name\":\"a\","
                "\"lastState\":{}}]}",
                "{\"phase\":\"Running\",\"containerStatuses\":[{\"name\":\"a\"}]}", NULL);
}

TEST(a_first_status_is_said_whole_and_holds_for_one_UID)
{
        expect_patch(NULL, "{\"phase\":\"Pending\",\"hostIP\":\"192.0.2.1\"}",
                     "{\"metadata\":{\"uid\":\"u-1\"},\"status\":{\"hostIP\":\"192.0.2.1\","
                     "\"phase\":\"Pending\"}}");
}

TEST(what_is_no_more_is_taken_back)
{
        expect_patch("{\"phase\":\"Failed\",\"reason\":\"Evicted\"}", "{\"phase\":\"Failed\"}",
                     "{\"metadata\":{\"uid\":\"u-1\"},\"status\":{\"reason\":null}}");
}

TEST(a_condition_of_somebody_else_is_left_alone)
{
        expect_patch("{\"conditions\":[{\"type\":\"example.com/gate\",\"status\":\"True\"},"
                     "{\"type\":\"Ready\",\"status\":\"True\"}]}",
                     "{\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}", NULL);
}

TEST(a_condition_loses_the_reason_that_it_has_no_more)
{
        expect_patch(
                "{\"conditions\":[{\"type\":\"Ready\",\"status\":\"False\",\"reason\":\"X\","
                "\"lastProbeTime\":null}]}",
                "{\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}",
                "{\"metadata\":{\"uid\":\"u-1\"},\"status\":{\"conditions\":[{\"type\":\"Ready\","
                "\"status\":\"True\",\"reason\":null}]}}");
}

TEST(an_address_that_is_no_more_is_taken_out_of_the_list_that_a_server_merges)
{
        expect_patch(
                "{\"podIPs\":[{\"ip\":\"10.0.0.1\"}]}", "{\"podIPs\":[{\"ip\":\"10.0.0.2\"}]}",
                "{\"metadata\":{\"uid\":\"u-1\"},\"status\":{\"podIPs\":[{\"ip\":\"10.0.0.2\"},"
                "{\"$patch\":\"delete\",\"ip\":\"10.0.0.1\"}]}}");
        expect_patch("{\"podIPs\":[{\"ip\":\"10.0.0.1\"}]}", "{}",
                     "{\"metadata\":{\"uid\":\"u-1\"},\"status\":{\"podIPs\":null}}");
}

TEST(a_status_that_is_no_object_is_refused)
{
        cleanup_free char *patch = NULL;

        EXPECT_EQ(kube_pod_status_patch("u", "[]", "{}", &patch), -EBADMSG);
        EXPECT_EQ(kube_pod_status_patch("u", NULL, "nonsense", &patch), -EBADMSG);
        EXPECT(!patch);
}
