/* SPDX-License-Identifier: Apache-2.0 */

/* Bodies in protobuf, self reviews, metrics. */

#include "agent/node-api/access/self-reviews.h"
#include "agent/node-api/kubernetes/metrics-objects.h"
#include "agent/node-api/wire/protobuf-body.h"
#include "common/cleanup.h"
#include "common/json-text.h"
#include "tests/test.h"

/* ---- protobuf ---- */

/* A body of this kind that contains the message. */
static size_t make_body(char *body, const char *kind, const char *message, size_t length) {
        size_t n = 0, kind_length = strlen(kind);

        memcpy(body, "k8s\0\x0a", 5);
        n = 5;
        body[n++] = (char) (kind_length + 6);
        memcpy(body + n, "\x0a\x02v1\x12", 5);
        n += 5;
        body[n++] = (char) kind_length;
        memcpy(body + n, kind, kind_length);
        n += kind_length;
        body[n++] = 0x12;
        body[n++] = (char) length;
        memcpy(body + n, message, length);
        return n + length;
}

#define PARSE(kind, message)                                                                   \
        ({                                                                                     \
                char made_body[256];                                                           \
                size_t made_length = make_body(made_body, kind, message, sizeof(message) - 1); \
                protobuf_body_parse(made_body, made_length);                                   \
        })

TEST(delete_options_are_read)
{
        /* 30 s, a precondition, a propagation policy, which is ignored, dryRun */
        cleanup_json json_t *options = PARSE("DeleteOptions", "\x08\x1e"
                                                              "\x12\x03\x0a\x01u"
                                                              "\x22\x0a"
                                                              "Background"
                                                              "\x2a\x03"
                                                              "All");

        EXPECT_EQ(json_integer_value(json_at(options, "gracePeriodSeconds")), 30);
        EXPECT_STREQ(json_text(options, "preconditions", "uid"), "u");
        EXPECT_STREQ(json_string_value(json_array_get(json_at(options, "dryRun"), 0)), "All");
        EXPECT_EQ(json_object_size(options), 3);
}

TEST(access_reviews_are_read)
{
        cleanup_json json_t *review = PARSE("SelfSubjectAccessReview", "\x12\x11\x0a\x0f"
                                                                       "\x12\x03"
                                                                       "get"
                                                                       "\x2a\x04"
                                                                       "pods"
                                                                       "\x32\x02"
                                                                       "xy");

        EXPECT_STREQ(json_text(review, "spec", "resourceAttributes", "verb"), "get");
        EXPECT_STREQ(json_text(review, "spec", "resourceAttributes", "resource"), "pods");
        EXPECT_STREQ(json_text(review, "spec", "resourceAttributes", "subresource"), "xy");
}

TEST(other_kinds_give_an_empty_object)
{
        cleanup_json json_t *other = PARSE("Eviction", "\x0a\x02\x0a\x00");

        EXPECT(json_is_object(other));
        EXPECT_EQ(json_object_size(other), 0);
}

TEST(damaged_protobuf_is_refused)
{
        char body[256];
        size_t length = make_body(body, "DeleteOptions", "\x08\x1e\x12\x03\x0a\x01u", 7);
        cleanup_json json_t *whole = protobuf_body_parse(body, length);

        EXPECT(whole);
        for (size_t n = 0; n < length; n++) {
                cleanup_json json_t *part = protobuf_body_parse(body, n);

                /* A body that is cut between two fields is shorter, but valid. */
                EXPECT(!part || json_object_size(part) == 0);
        }
        EXPECT(!PARSE("DeleteOptions", "\x0a\x01x"));            /* not a number */
        EXPECT(!PARSE("DeleteOptions", "\x12\x03\x0a\x01\xff")); /* not UTF-8 */
        EXPECT(!PARSE("DeleteOptions", "\x0b"));                 /* an old wire type */
        EXPECT(!PARSE("DeleteOptions", "\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"));
        EXPECT(!PARSE("DeleteOptions", "\x12\xff\xff\xff\xff\xff\xff\xff\xff\x7f")); /* too long */
        EXPECT(!is_protobuf_body("{}", 2));
        EXPECT(is_protobuf_body(body, length));
}

/* ---- reviews ---- */

static bool is_allowed(const char *group, const char *resource, const char *subresource,
                       const char *verb) {
        cleanup_json json_t *review =
                json_pack("{s:{s:{s:s, s:s, s:s*, s:s}}}", "spec", "resourceAttributes", "group",
                          group, "resource", resource, "subresource", subresource, "verb", verb);
        cleanup_json json_t *reply = self_review_reply(
                "authorization.k8s.io", "selfsubjectaccessreviews", &(ApiUser){ 0 }, review);
        const json_t *allowed = json_at(reply, "status", "allowed");

        EXPECT_STREQ(json_text(reply, "kind"), "SelfSubjectAccessReview");
        EXPECT(json_is_boolean(allowed));
        EXPECT(json_is_true(allowed) || json_text(reply, "status", "reason"));
        return json_is_true(allowed);
}

TEST(served_verbs_are_allowed)
{
        EXPECT(is_allowed("", "pods", NULL, "watch"));
        EXPECT(is_allowed("", "pods", "", "delete"));
        EXPECT(is_allowed("", "pods", "exec", "create"));
        EXPECT(is_allowed("apps", "daemonsets", NULL, "patch"));
        EXPECT(is_allowed("metrics.k8s.io", "pods", NULL, "list"));
        EXPECT(!is_allowed("metrics.k8s.io", "pods", NULL, "delete"));
        EXPECT(!is_allowed("metrics.k8s.io", "pods", "exec", "create"));
        EXPECT(!is_allowed("", "pods", NULL, "create"));
        EXPECT(!is_allowed("", "secrets", NULL, "delete"));
        EXPECT(is_allowed("", "services", NULL, "list"));
        EXPECT(!is_allowed("", "services", NULL, "create"));
        EXPECT(!is_allowed("", "serviceaccounts", NULL, "list"));
        EXPECT(!is_allowed("", "*", NULL, "*"));
}

TEST(other_reviews_do_not_exist)
{
        cleanup_json json_t *review = json_object();

        EXPECT(!self_review_reply("authorization.k8s.io", "subjectaccessreviews", &(ApiUser){ 0 },
                                  review));
        EXPECT(!self_review_reply("", "selfsubjectaccessreviews", &(ApiUser){ 0 }, review));
}

TEST(self_subject_review_contains_the_groups_of_the_user)
{
        char name[] = "admin", group[] = "system:masters", *groups[] = { group, NULL };
        cleanup_json json_t *review = json_object();
        cleanup_json json_t *reply =
                self_review_reply("authentication.k8s.io", "selfsubjectreviews",
                                  &(ApiUser){ .name = name, .groups = groups }, review);
        const json_t *info = json_at(reply, "status", "userInfo");

        EXPECT_STREQ(json_text(info, "username"), "admin");
        EXPECT_STREQ(json_string_value(json_array_get(json_object_get(info, "groups"), 0)),
                     "system:masters");
}

/* ---- metrics ---- */

static const char summary_text[] =
        "{\"node\":{\"nodeName\":\"n\",\"cpu\":{\"time\":\"T\",\"usageNanoCores\":7},"
        "\"memory\":{\"workingSetBytes\":4096}},"
        "\"pods\":[{\"podRef\":{\"name\":\"a\",\"namespace\":\"x\"},\"cpu\":{\"time\":\"T\"},"
        "\"containers\":[{\"name\":\"c\",\"cpu\":{\"usageNanoCores\":5},"
        "\"memory\":{\"workingSetBytes\":2047}},{\"name\":\"new\",\"memory\":{}}]},"
        "{\"podRef\":{\"name\":\"b\",\"namespace\":\"x\"},\"containers\":[{\"name\":\"c\"}]}]}";

TEST(metrics_contain_the_measured_usage)
{
        cleanup_json json_t *summary = json_loads(summary_text, 0, NULL);
        cleanup_json json_t *pods = pod_metrics_of_summary(summary);
        cleanup_json json_t *nodes = node_metrics_of_summary(summary);
        const json_t *pod = json_array_get(pods, 0), *node = json_array_get(nodes, 0);
        const json_t *container = json_array_get(json_at(pod, "containers"), 0);

        EXPECT_EQ(json_array_size(pods), 1);
        EXPECT_EQ(json_array_size(json_at(pod, "containers")), 1);
        EXPECT_STREQ(json_text(pod, "timestamp"), "T");
        EXPECT_STREQ(json_text(container, "usage", "cpu"), "5n");
        EXPECT_STREQ(json_text(container, "usage", "memory"), "1Ki");
        EXPECT_STREQ(json_text(node, "metadata", "name"), "n");
        EXPECT_STREQ(json_text(node, "usage", "cpu"), "7n");
}

TEST(metrics_have_the_labels_of_their_object)
{
        cleanup_json json_t *summary = json_loads(summary_text, 0, NULL);
        cleanup_json json_t *metrics = pod_metrics_of_summary(summary);
        cleanup_json json_t *pods =
                json_pack("[{s:{s:s, s:s, s:{s:s}}}, {s:{s:s}}]", "metadata", "namespace", "x",
                          "name", "a", "labels", "app", "web", "metadata", "name", "plain");
        cleanup_json json_t *labels = list_labels(pods);

        set_labels(metrics, labels);
        EXPECT_STREQ(json_text(json_array_get(metrics, 0), "metadata", "labels", "app"), "web");
}

TEST(an_empty_summary_gives_an_empty_list)
{
        cleanup_json json_t *empty = json_object();
        cleanup_json json_t *pods = pod_metrics_of_summary(empty);
        cleanup_json json_t *nodes = node_metrics_of_summary(empty);

        EXPECT_EQ(json_array_size(pods) + json_array_size(nodes), 0);
}
