/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/kubeclient/review-request.h"
#include "common/cleanup.h"
#include "tests/test.h"

TEST(reviews_are_posted_to_their_groups)
{
        KubeRequestSpec token = kube_token_review_request("{}");
        KubeRequestSpec access = kube_access_review_request("{\"a\":1}");

        EXPECT_STREQ(token.method, "POST");
        EXPECT_STREQ(token.path, "/apis/authentication.k8s.io/v1/tokenreviews");
        EXPECT_EQ(token.body_length, 2);
        EXPECT_STREQ(access.path, "/apis/authorization.k8s.io/v1/subjectaccessreviews");
        EXPECT_STREQ(access.body, "{\"a\":1}");
}

TEST(a_review_that_failed_is_an_error)
{
        const KubeResponse good = { .status = 201, .body = "{\"status\":{}}", .length = 13 };
        const KubeResponse refused = { .status = 403, .body = "{}", .length = 2 };
        const KubeResponse none = { .error = "no route to host", .body = "" };
        cleanup_free char *reviewed = kube_review_result(&good);
        cleanup_free char *forbidden = kube_review_result(&refused);
        cleanup_free char *unreachable = kube_review_result(&none);

        EXPECT_STREQ(reviewed, "{\"status\":{}}");
        EXPECT(strstr(forbidden, "{\"error\":\"403"));
        EXPECT_STREQ(unreachable, "{\"error\":\"no route to host\"}");
}
