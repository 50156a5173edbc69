/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/kubeclient/lease-object.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "tests/test.h"

#define NOW (UINT64_C(1767225600) * USEC_PER_SEC + 1234) /* 2026-01-01T00:00:00.001234Z */

static void expect_has(const char *text, const char *part) {
        if (!text || !strstr(text, part))
                test_fail(__FILE__, __LINE__, part, "is not in %s", text ? text : "nothing");
}

TEST(lease_is_owned_by_its_node)
{
        cleanup_free char *body = lease_object_new("node1", "u-1", NOW);

        expect_has(body, "\"namespace\":\"kube-node-lease\"");
        expect_has(body, "\"ownerReferences\":[{\"apiVersion\":\"v1\",\"kind\":\"Node\",\"name\":"
                         "\"node1\",\"uid\":\"u-1\"}]");
        expect_has(body, "\"spec\":{\"holderIdentity\":\"node1\",\"leaseDurationSeconds\":40,"
                         "\"renewTime\":\"2026-01-01T00:00:00.001234Z\"}");
}

TEST(server_lease_is_renewed)
{
        cleanup_free char *body = NULL;

        EXPECT_EQ(lease_object_renew("{\"metadata\":{\"resourceVersion\":\"7\",\"uid\":\"x\","
                                     "\"managedFields\":[1]},\"spec\":{\"renewTime\":"
                                     "\"2025-01-01T00:00:00.000000Z\",\"holderIdentity\":\"old\"}}",
                                     "node1", NOW, &body),
                  0);
        expect_has(body, "\"metadata\":{\"resourceVersion\":\"7\",\"uid\":\"x\"}");
        expect_has(body, "\"renewTime\":\"2026-01-01T00:00:00.001234Z\"");
        expect_has(body, "\"holderIdentity\":\"node1\"");
}

TEST(renewal_time_advances_although_the_clock_was_set_back)
{
        cleanup_free char *body = NULL;

        EXPECT_EQ(lease_object_renew("{\"metadata\":{},\"spec\":{\"renewTime\":"
                                     "\"2036-01-01T00:00:00.999999Z\"}}",
                                     "node1", NOW, &body),
                  0);
        expect_has(body, "\"renewTime\":\"2036-01-01T00:00:01.000000Z\"");
}

TEST(json_that_is_not_a_lease_is_an_error)
{
        static const char *const cases[] = { "", "7", "{}", "{\"spec\":{}}",
                                             "{\"metadata\":[],\"spec\":{}}" };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                char *body;

                EXPECT_EQ(lease_object_renew(cases[i], "n", NOW, &body), -EBADMSG);
                EXPECT_EQ(lease_object_version(cases[i]), 0);
        }
        EXPECT_EQ(lease_object_version("{\"metadata\":{\"resourceVersion\":\"123\"}}"), 123);
}
