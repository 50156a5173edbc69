/* SPDX-License-Identifier: Apache-2.0 */
/* Service account tokens: refresh times, requests, responses and the cached form. */

#include "agent/apiserver/token-refresh.h"

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/text.h"
#include "tests/test.h"

#include <inttypes.h>

#define NOW (UINT64_C(1800000000) * USEC_PER_SEC)

static uint64_t seconds(uint64_t n) {
        return n * USEC_PER_SEC;
}

TEST(token_is_refreshed_at_four_fifths_of_its_lifetime_and_after_a_day_at_the_latest)
{
        static const struct {
                uint64_t lifetime, delay; /* seconds */
        } cases[] = { { 3600, 2880 },
                      { 600, 480 },
                      { UINT64_C(7) * 24 * 3600, UINT64_C(24) * 3600 },
                      { 5, TOKEN_REFRESH_MIN_SEC } };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++)
                EXPECT_EQ(token_refresh_delay(NOW, NOW + seconds(cases[i].lifetime),
                                              (int64_t) cases[i].lifetime),
                          seconds(cases[i].delay));
}

TEST(a_token_is_refreshed_in_time_if_the_clock_is_not_set)
{ EXPECT_EQ(token_refresh_delay(seconds(60), NOW + seconds(3600), 3600), seconds(2880)); }

TEST(requested_lifetime_is_used_if_the_clocks_differ)
{
        EXPECT_EQ(token_refresh_delay(NOW, NOW - seconds(60), 3600), seconds(2880));
        EXPECT_EQ(token_refresh_delay(NOW, NOW, 600), seconds(480));
}

TEST(request_names_audience_lifetime_and_pod)
{
        TokenIdentity identity = { .namespace = "ns",
                                   .pod = "web",
                                   .pod_uid = "u1",
                                   .audience = "vault",
                                   .seconds = 600 };
        cleanup_free char *json = token_request_to_json(&identity), *without = NULL;

        EXPECT_STREQ(json, "{\"kind\":\"TokenRequest\",\"apiVersion\":\"authentication.k8s.io/v1\","
                           "\"spec\":{\"audiences\":[\"vault\"],\"expirationSeconds\":600,"
                           "\"boundObjectRef\":{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"name\":"
                           "\"web\",\"uid\":\"u1\"}}}");
        identity.audience = NULL;
        without = token_request_to_json(&identity);
        EXPECT(without && strstr(without, "\"audiences\":null"));
}

TEST(refusal_because_the_server_does_not_know_the_pod_yet_is_temporary)
{
        EXPECT(token_refusal_may_pass(
                403, "403 Forbidden: serviceaccounts \"default\" is forbidden: User "
                     "\"system:node:n1\" cannot create resource \"serviceaccounts/token\" in API "
                     "group \"\" in the namespace \"n1\": no relationship found between node 'n1' "
                     "and this object"));
        EXPECT(token_refusal_may_pass(403,
                                      "serviceaccounts \"default\" is forbidden: node requested "
                                      "token bound to a pod scheduled on a different node"));
        EXPECT(!token_refusal_may_pass(403, "serviceaccounts \"default\" is forbidden: RBAC"));
        EXPECT(!token_refusal_may_pass(404, "no relationship found between node 'n1'"));
}

static int parse_response(const char *json, char **ret_token, uint64_t *ret_expires) {
        return token_response_parse(json, strlen(json), ret_token, ret_expires);
}

TEST(response_needs_a_token_and_its_expiry)
{
        cleanup_free char *token = NULL;
        uint64_t expires = 0;

        EXPECT_EQ(parse_response("{\"status\":{\"token\":\"abc\",\"expirationTimestamp\":"
                                 "\"2027-01-15T08:00:00Z\"}}",
                                 &token, &expires),
                  0);
        EXPECT_STREQ(token, "abc");
        EXPECT_EQ(expires, NOW);
        EXPECT_EQ(parse_response("{\"status\":{\"token\":\"abc\"}}", &token, &expires), -EBADMSG);
        EXPECT_EQ(parse_response("{\"status\":{\"token\":\"\",\"expirationTimestamp\":"
                                 "\"2027-01-15T08:00:00Z\"}}",
                                 &token, &expires),
                  -EBADMSG);
        EXPECT_EQ(parse_response("no JSON", &token, &expires), -EBADMSG);
}

TEST(cached_token_is_read_back_with_its_refresh_time)
{
        cleanup_free char *text = token_cache_format("abc", NOW + seconds(100), NOW + seconds(120)),
                          *token = NULL;
        uint64_t delay = 0, expires = 0;

        EXPECT_EQ(token_cache_parse(text, NOW, &token, &delay, &expires), 0);
        EXPECT_STREQ(token, "abc");
        EXPECT_EQ(delay, seconds(100));
        EXPECT_EQ(expires, NOW + seconds(120));
}

TEST(cached_token_of_an_earlier_version_has_no_expiry)
{
        cleanup_free char *text = text_format("%" PRIu64 "\nabc\n", NOW + seconds(100)),
                          *token = NULL;
        uint64_t delay = 0, expires = 1;

        EXPECT_EQ(token_cache_parse(text, NOW, &token, &delay, &expires), 0);
        EXPECT_STREQ(token, "abc");
        EXPECT_EQ(expires, 0);
}

TEST(cached_token_is_refreshed_at_once_if_its_time_has_passed_or_the_clock_was_set)
{
        static const uint64_t nows[] = { NOW + 101 * USEC_PER_SEC,
                                         NOW - UINT64_C(2) * 86400 * USEC_PER_SEC };
        cleanup_free char *text = token_cache_format("abc", NOW + seconds(100), NOW + seconds(120));

        for (size_t i = 0; i < N_ELEMENTS(nows); i++) {
                cleanup_free char *token = NULL;
                uint64_t delay = 1, expires = 0;

                EXPECT_EQ(token_cache_parse(text, nows[i], &token, &delay, &expires), 0);
                EXPECT_STREQ(token, "abc");
                EXPECT_EQ(delay, 0);
        }
}

TEST(incomplete_cached_token_is_an_error)
{
        char *token = NULL;
        uint64_t delay = 0, expires = 0;

        EXPECT_EQ(token_cache_parse("123", NOW, &token, &delay, &expires), -EBADMSG);
        EXPECT_EQ(token_cache_parse("123\nabc", NOW, &token, &delay, &expires), -EBADMSG);
        EXPECT(!token);
}
