/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/model/request-attributes.h"

#include "agent/access/review-objects.h"
#include "agent/model/review-cache.h"
#include "agent/node-api/http/request-url.h"
#include "agent/node-api/process/agent-reply.h"
#include "agent/node-api/process/api-settings.h"
#include "agent/node-api/session/session-result.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/strv.h"
#include "tests/test.h"

#include <errno.h>

TEST(requests_require_the_verbs_and_subresources_of_the_kubelet)
{
        static const struct {
                const char *method, *path;
                bool is_upgrade;
                const char *verb, *first, *second;
        } cases[] = {
                { "GET", "/pods", false, "get", "pods", "proxy" },
                { "GET", "/pods/", false, "get", "pods", "proxy" },
                { "GET", "/podsandmore", false, "get", "proxy", NULL },
                { "GET", "/runningpods/", false, "get", "pods", "proxy" },
                { "GET", "/healthz/ping", false, "get", "healthz", "proxy" },
                { "GET", "/configz", false, "get", "configz", "proxy" },
                { "GET", "/stats/summary", false, "get", "stats", NULL },
                { "GET", "/metrics/cadvisor", false, "get", "metrics", NULL },
                { "GET", "/logs/", false, "get", "log", NULL },
                { "POST", "/checkpoint/a/b/c", false, "create", "checkpoint", NULL },
                { "GET", "/statusz", false, "get", "statusz", NULL },
                { "GET", "/flagz", false, "get", "configz", NULL },
                { "POST", "/exec/a/b/c", false, "create", "proxy", NULL },
                { "GET", "/exec/a/b/c", true, "create", "proxy", NULL },
                { "GET", "/pods", true, "get", "pods", "proxy" },
                { "GET", "/metrics", true, "get", "metrics", NULL },
                { "GET", "/containerLogs/a/b/c", false, "get", "proxy", NULL },
                { "PUT", "/x", false, "update", "proxy", NULL },
                { "PATCH", "/x", false, "patch", "proxy", NULL },
                { "DELETE", "/x", false, "delete", "proxy", NULL },
                { "OPTIONS", "/x", false, "", "proxy", NULL },
        };

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                RequestAttributes got =
                        request_attributes(cases[i].method, cases[i].path, cases[i].is_upgrade);

                EXPECT_STREQ(got.verb, cases[i].verb);
                EXPECT_STREQ(got.subresources[0], cases[i].first);
                EXPECT_EQ(got.n_subresources, cases[i].second ? 2 : 1);
                if (cases[i].second)
                        EXPECT_STREQ(got.subresources[1], cases[i].second);
        }
}

TEST(refusal_names_user_verb_and_subresources)
{
        RequestAttributes pods = request_attributes("GET", "/pods", false);
        RequestAttributes exec = request_attributes("POST", "/exec/a/b/c", false);
        cleanup_free char *of_pods = format_forbidden("jane", &pods);
        cleanup_free char *of_exec = format_forbidden("joe", &exec);

        EXPECT_STREQ(
                of_pods,
                "Forbidden (user=jane, verb=get, resource=nodes, subresource(s)=[pods proxy])");
        EXPECT_STREQ(of_exec,
                     "Forbidden (user=joe, verb=create, resource=nodes, subresource(s)=[proxy])");
}

TEST(cached_reviews_expire)
{
        cleanup_with(review_cache_freep) ReviewCache *cache = NULL;

        REQUIRE(review_cache_new(free, &cache) >= 0);
        EXPECT(!review_cache_find(cache, "a", 1));
        review_cache_put(cache, "a", strdup("one"), 1, 10);
        EXPECT_STREQ(review_cache_find(cache, "a", 9), "one");
        EXPECT(!review_cache_find(cache, "a", 10));
        EXPECT(!review_cache_find(cache, "b", 1));
        review_cache_put(cache, "a", strdup("two"), 10, 20);
        EXPECT_STREQ(review_cache_find(cache, "a", 11), "two");
        review_cache_put(cache, "c", strdup("never"), 10, 10);
        EXPECT(!review_cache_find(cache, "c", 10));
}

TEST(cache_of_reviews_keeps_the_latest_of_many)
{
        cleanup_with(review_cache_freep) ReviewCache *cache = NULL;
        char key[16];
        unsigned n = 0;

        REQUIRE(review_cache_new(free, &cache) >= 0);
        for (unsigned i = 0; i < 10000; i++) {
                (void) snprintf(key, sizeof(key), "%u", i);
                review_cache_put(cache, key, strdup(key), i, i + 100000);
                EXPECT_STREQ(review_cache_find(cache, key, i), key);
        }
        for (unsigned i = 9000; i < 10000; i++) {
                (void) snprintf(key, sizeof(key), "%u", i);
                n += review_cache_find(cache, key, 10000) != NULL;
        }
        EXPECT(n > 900);
}

TEST(token_review_names_the_user)
{
        cleanup_with(api_user_done) ApiUser user = { 0 };
        cleanup_error Error error = ERROR_NULL;
        cleanup_free char *request = token_review_format("a\"b");

        EXPECT_STREQ(request,
                     "{\"kind\":\"TokenReview\",\"apiVersion\":\"authentication.k8s.io/v1\","
                     "\"spec\":{\"token\":\"a\\\"b\"}}");
        EXPECT_EQ(token_review_parse("{\"status\":{\"authenticated\":true,\"user\":{\"username\":"
                                     "\"jane\",\"uid\":\"7\",\"groups\":[\"a\",\"b\"]}}}",
                                     &user, NULL),
                  1);
        EXPECT_STREQ(user.name, "jane");
        EXPECT_STREQ(user.uid, "7");
        EXPECT_EQ(strv_length(user.groups), 2);
        EXPECT_EQ(token_review_parse("{\"status\":{\"error\":\"x\"}}", &user, NULL), 0);
        EXPECT_EQ(token_review_parse("{}", &user, &error), -EBADMSG);
        EXPECT_EQ(token_review_parse("not JSON", &user, NULL), -EBADMSG);
        EXPECT_EQ(token_review_parse(
                          "{\"status\":{\"authenticated\":true,\"user\":{\"username\":\"\"}}}",
                          &user, NULL),
                  -EBADMSG);
}

TEST(access_review_contains_all_user_attributes_of_the_token_review)
{
        cleanup_with(api_user_done) ApiUser user = { 0 };
        cleanup_free char *request = NULL;

        REQUIRE(token_review_parse("{\"status\":{\"authenticated\":true,\"user\":{\"username\":"
                                   "\"jane\",\"uid\":\"7\",\"groups\":[\"a\"],\"extra\":{"
                                   "\"scopes.example.com\":[\"read\",\"logs\",7],\"b\":[],"
                                   "\"a\":\"no list\"}}}}",
                                   &user, NULL) == 1);
        request = access_review_format(&user, "get", "node1", "proxy");
        EXPECT(request && strstr(request, "\"user\":\"jane\",\"uid\":\"7\",\"groups\":[\"a\"],"
                                          "\"extra\":{\"a\":[],\"b\":[],\"scopes.example.com\":"
                                          "[\"read\",\"logs\"]},\"resourceAttributes\""));
}

TEST(access_review_names_a_subresource_of_the_node)
{
        char *groups[] = { (char[]){ "g" }, NULL };
        ApiUser user = { .name = (char[]){ "jane" }, .groups = groups };
        cleanup_free char *request = access_review_format(&user, "get", "node1", "proxy");

        EXPECT_STREQ(request,
                     "{\"kind\":\"SubjectAccessReview\",\"apiVersion\":\"authorization.k8s.io/v1\","
                     "\"spec\":{\"user\":\"jane\",\"groups\":[\"g\"],\"resourceAttributes\":"
                     "{\"verb\":\"get\",\"version\":\"v1\",\"resource\":\"nodes\",\"subresource\":"
                     "\"proxy\",\"name\":\"node1\"}}}");
        EXPECT_EQ(access_review_parse("{\"status\":{\"allowed\":true}}", NULL), 1);
        EXPECT_EQ(access_review_parse("{\"status\":{\"allowed\":false}}", NULL), 0);
        EXPECT_EQ(access_review_parse("{\"status\":{}}", NULL), 0);
        EXPECT_EQ(access_review_parse("[]", NULL), -EBADMSG);
}

TEST(settings_are_read)
{
        cleanup_with(api_settings_done) ApiSettings settings = { 0 };

        EXPECT_EQ(api_settings_parse("{\"nodeName\":\"n\",\"tokenCacheMilliseconds\":120000,"
                                     "\"allowedCacheMilliseconds\":-1,\"alone\":true,"
                                     "\"streamIdleMilliseconds\":1500}",
                                     &settings, NULL),
                  0);
        EXPECT_STREQ(settings.node_name, "n");
        EXPECT(settings.is_alone && !settings.has_debugging);
        EXPECT_EQ(settings.token_cache_usec, 120 * USEC_PER_SEC);
        EXPECT_EQ(settings.allowed_usec, 0);
        EXPECT_EQ(settings.stream_idle_usec, 1500 * USEC_PER_MSEC);
        EXPECT_EQ(api_settings_parse("{}", &settings, NULL), -EBADMSG);
}

TEST(data_of_a_client_cannot_change_the_request_to_the_agent)
{
        char *text = NULL;
        size_t size;
        FILE *out = open_memstream(&text, &size);

        REQUIRE(out);
        url_write_escaped(out, "a-Z_0.~/ ?&#%\r\n\xff");
        fclose(out);
        EXPECT_STREQ(text, "a-Z_0.~%2F%20%3F%26%23%25%0D%0A%FF");
        free(text);
}

TEST(paths_are_split_into_names)
{
        static const struct {
                const char *path;
                int n;
        } cases[] = {
                { "a/b/c", 3 },      { "a", 1 },      { "a/b/c/d", -EINVAL },
                { "a//b", -EINVAL }, { "", -EINVAL }, { "a/", -EINVAL },
        };
        const char *parts[3];

        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                cleanup_free char *path = strdup(cases[i].path);

                EXPECT_EQ(split_url_path(path, parts, 3), cases[i].n);
        }
}

TEST(head_of_a_reply_is_read_when_it_is_complete)
{
        static const char text[] = "HTTP/1.1 404 Not Found\r\nContent-Length: 12\r\n"
                                   "Content-Type: text/plain\r\n\r\nbody";
        AgentReplyHead head;

        for (size_t i = 0; i < sizeof(text) - 5; i++)
                EXPECT_EQ(agent_reply_head_parse(text, i, &head), 0);
        EXPECT_EQ(agent_reply_head_parse(text, sizeof(text) - 1, &head), 1);
        EXPECT_EQ(head.status, 404);
        EXPECT_EQ(head.length, sizeof(text) - 5);
        EXPECT_EQ(head.body_length, 12);
        EXPECT_STREQ(head.content_type, "text/plain");
}

TEST(invalid_response_heads_are_refused)
{
        static const char *const cases[] = {
                "HTTP/2 200 OK\r\n\r\n",
                "HTTP/1.1 2x0 OK\r\n\r\n",
                "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
                "HTTP/1.1 200 OK\r\nContent-Length: 1x\r\n\r\n",
                "HTTP/1.1 200 OK\r\nContent-Length: \r\n\r\n",
                "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
                "\r\n\r\n",
        };
        AgentReplyHead head;

        for (size_t i = 0; i < N_ELEMENTS(cases); i++)
                EXPECT_EQ(agent_reply_head_parse(cases[i], strlen(cases[i]), &head), -EBADMSG);
}

TEST(results_have_messages_for_old_protocols)
{
        cleanup_free char *failed =
                session_result_failure("{\"status\":\"Failure\",\"message\":\"m\"}");
        cleanup_free char *success = session_result_failure("{\"status\":\"Success\"}");
        cleanup_free char *unknown = session_result_failure("?");
        cleanup_free char *error = session_result_of_error("it \"broke\"");

        EXPECT_STREQ(failed, "m");
        EXPECT(!success);
        EXPECT_STREQ(unknown, "the command failed");
        EXPECT(strstr(error, "\"reason\":\"InternalError\"") && strstr(error, "it \\\"broke\\\""));
}
