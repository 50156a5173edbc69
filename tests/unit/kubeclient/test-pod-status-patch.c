/* SPDX-License-Identifier: Apache-2.0 */
/* The patch of a pod's status: which fields it contains, and which ones it leaves to other
 * writers. */

#include "agent/kubeclient/pod-status-patch.h"

#include "common/cleanup.h"
#include "common/json-text.h"
#include "tests/test.h"

static void expect_patch(const char *reported, const char *ours, const char *expected) {
        cleanup_json json_t *tree = json_loads(ours, 0, NULL);
        cleanup_free char *patch = NULL;
        int r = kube_pod_status_patch("u-1", reported, tree, &patch);

        EXPECT_EQ(r, expected ? 1 : 0);
        EXPECT_STREQ(patch, expected);
}

TEST(equal_fields_are_not_in_the_patch)
{
        expect_patch("{\"phase\":\"Running\",\"qosClass\":\"BestEffort\"}",
                     "{\"phase\":\"Running\",\"qosClass\":\"BestEffort\"}", NULL);
        expect_patch(
                "{\"phase\":\"Running\",\"message\":\"\",\"containerStatuses\":[{\"name\":\"a\","
                "\"lastState\":{}}]}",
                "{\"phase\":\"Running\",\"containerStatuses\":[{\"name\":\"a\"}]}", NULL);
}

TEST(first_status_is_complete_and_names_its_UID)
{
        expect_patch(NULL, "{\"phase\":\"Pending\",\"hostIP\":\"192.0.2.1\"}",
                     "{\"metadata\":{\"uid\":\"u-1\"},\"status\":{\"hostIP\":\"192.0.2.1\","
                     "\"phase\":\"Pending\"}}");
}

TEST(unset_field_is_patched_to_null)
{
        expect_patch("{\"phase\":\"Failed\",\"reason\":\"Evicted\"}", "{\"phase\":\"Failed\"}",
                     "{\"metadata\":{\"uid\":\"u-1\"},\"status\":{\"reason\":null}}");
}

TEST(condition_of_another_writer_stays)
{
        expect_patch("{\"conditions\":[{\"type\":\"example.com/gate\",\"status\":\"True\"},"
                     "{\"type\":\"Ready\",\"status\":\"True\"}]}",
                     "{\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}", NULL);
}

TEST(condition_of_a_resize_that_is_done_gets_a_delete_directive)
{
        expect_patch("{\"conditions\":[{\"type\":\"PodResizeInProgress\",\"status\":\"True\"},"
                     "{\"type\":\"DisruptionTarget\",\"status\":\"True\"},"
                     "{\"type\":\"Ready\",\"status\":\"True\"}]}",
                     "{\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}",
                     "{\"metadata\":{\"uid\":\"u-1\"},\"status\":{\"conditions\":["
                     "{\"$patch\":\"delete\",\"type\":\"PodResizeInProgress\"}]}}");
}

TEST(unset_reason_of_a_condition_is_patched_to_null)
{
        expect_patch(
                "{\"conditions\":[{\"type\":\"Ready\",\"status\":\"False\",\"reason\":\"X\","
                "\"lastProbeTime\":null}]}",
                "{\"conditions\":[{\"type\":\"Ready\",\"status\":\"True\"}]}",
                "{\"metadata\":{\"uid\":\"u-1\"},\"status\":{\"conditions\":[{\"type\":\"Ready\","
                "\"status\":\"True\",\"reason\":null}]}}");
}

#define READY(status, time)                                         \
        "{\"conditions\":[{\"type\":\"Ready\",\"status\":\"" status \
        "\",\"lastTransitionTime\":\"2026-01-02T03:04:" time "Z\"}]}"
#define READY_PATCH(status, time) \
        "{\"metadata\":{\"uid\":\"u-1\"},\"status\":" READY(status, time) "}"

TEST(time_of_a_condition_moves_only_forward_while_its_status_stays)
{
        expect_patch(READY("True", "05"), READY("True", "03"), NULL);
        expect_patch(READY("True", "05"), READY("True", "07"), READY_PATCH("True", "07"));
        expect_patch(READY("False", "05"), READY("True", "03"), READY_PATCH("True", "03"));
}

TEST(removed_address_gets_a_delete_directive)
{
        expect_patch(
                "{\"podIPs\":[{\"ip\":\"10.0.0.1\"}]}", "{\"podIPs\":[{\"ip\":\"10.0.0.2\"}]}",
                "{\"metadata\":{\"uid\":\"u-1\"},\"status\":{\"podIPs\":[{\"ip\":\"10.0.0.2\"},"
                "{\"$patch\":\"delete\",\"ip\":\"10.0.0.1\"}]}}");
        expect_patch("{\"podIPs\":[{\"ip\":\"10.0.0.1\"}]}", "{}",
                     "{\"metadata\":{\"uid\":\"u-1\"},\"status\":{\"podIPs\":null}}");
}

TEST(status_that_is_not_an_object_is_an_error)
{
        cleanup_json json_t *ours = json_object();
        cleanup_free char *patch = NULL;

        EXPECT_EQ(kube_pod_status_patch("u", "[]", ours, &patch), -EBADMSG);
        EXPECT_EQ(kube_pod_status_patch("u", NULL, NULL, &patch), -EBADMSG);
        EXPECT(!patch);
}
