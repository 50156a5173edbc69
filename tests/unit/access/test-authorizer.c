/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/access/authorizer.h"

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/strv.h"
#include "tests/test.h"

#include <errno.h>

static const uint8_t key[TICKET_KEY_SIZE] = "key";

/* A fake API server, which receives requests and replies when the test requests it. */
static struct {
        AccessCheck *check;
        AccessReviewKind kind;
        char *body;
        unsigned n;
        bool is_away;
} server;

static struct {
        unsigned n, status;
        char *message, *user;
} answered;

static int start_test_review(void *userdata, AccessReviewKind kind, const char *body,
                             AccessCheck *check, void **ret_request, Error *reterr) {
        if (server.is_away)
                return error_setf(reterr, EAGAIN, "no API server");
        server.check = check;
        server.kind = kind;
        free(server.body);
        server.body = strdup(body);
        server.n++;
        *ret_request = &server;
        return 0;
}

static void cancel_test_review(void *request) {
        server.check = NULL;
}

static void on_test_answer(const AccessAnswer *answer, void *userdata) {
        answered.n++;
        answered.status = answer->status;
        free(answered.message);
        free(answered.user);
        answered.message = answer->message ? strdup(answer->message) : NULL;
        answered.user = answer->user ? strdup(answer->user->name) : NULL;
}

static Authorizer *make_authorizer(const AuthorizerSpec *more) {
        AuthorizerSpec spec = *more;
        Authorizer *authorizer;
        static char node[] = "node1";

        spec.node_name = node;
        spec.ticket_key = key;
        spec.token_usec = spec.allowed_usec = spec.denied_usec = 3600 * USEC_PER_SEC;
        spec.start_review = start_test_review;
        spec.cancel_review = cancel_test_review;
        REQUIRE(authorizer_new(&spec, &authorizer) == 0);
        return authorizer;
}

/* Returns the HTTP status; 0: not decided yet. */
static unsigned ask(Authorizer *authorizer, const char *ticket, const char *token,
                    const char *method, const char *path, bool is_session) {
        const AccessQuestion question = {
                .ticket = ticket,
                .token = token,
                .attributes = request_attributes(method, path, is_session),
        };
        AccessCheck *check;

        answered.status = 0;
        REQUIRE(authorizer_check(authorizer, &question, on_test_answer, NULL, &check) == 0);
        EXPECT_EQ(check != NULL, answered.status == 0);
        return answered.status;
}

static char *make_ticket(const char *name, const char *group, uint64_t expires,
                         const uint8_t *with_key) {
        char *groups[] = { (char *) (uintptr_t) group, NULL }, *ticket;
        ApiUser user = { .name = (char *) (uintptr_t) name, .groups = groups };

        REQUIRE(client_ticket_format(&user, expires, "ca", with_key, &ticket) == 0);
        return ticket;
}

#define LATER UINT64_C(9000000000000000)

TEST(without_a_ticket_or_token_there_is_no_user)
{
        Authorizer *authorizer = make_authorizer(&(AuthorizerSpec){ .is_alone = true });

        EXPECT_EQ(ask(authorizer, NULL, NULL, "GET", "/pods", false), 401);
        EXPECT_EQ(ask(authorizer, "", "", "POST", "/exec/a/b/c", true), 401);
        EXPECT_EQ(ask(authorizer, NULL, "made-up", "GET", "/pods", false), 401);
        authorizer_free(authorizer);
}

TEST(a_ticket_that_the_signer_has_not_issued_is_refused)
{
        static const uint8_t other_key[TICKET_KEY_SIZE] = "other";
        Authorizer *authorizer = make_authorizer(&(AuthorizerSpec){ .has_anonymous = true });
        cleanup_free char *good = make_ticket("admin", "system:masters", LATER, key);
        cleanup_free char *old = make_ticket("admin", "system:masters", 1, key);
        cleanup_free char *forged = make_ticket("admin", "system:masters", LATER, other_key);

        EXPECT_EQ(ask(authorizer, good, NULL, "GET", "/pods", false), 200);
        EXPECT_STREQ(answered.user, "admin");
        EXPECT_EQ(ask(authorizer, old, NULL, "GET", "/pods", false), 401);
        EXPECT_EQ(ask(authorizer, forged, NULL, "GET", "/pods", false), 401);
        EXPECT_EQ(ask(authorizer, "x.y", NULL, "GET", "/pods", false), 401);
        for (size_t i = 0; good[i]; i++) {
                good[i] = (char) (good[i] ^ 1);
                EXPECT_EQ(ask(authorizer, good, NULL, "GET", "/pods", false), 401);
                good[i] = (char) (good[i] ^ 1);
        }
        authorizer_set_authorities(authorizer, "ca");
        EXPECT_EQ(ask(authorizer, good, NULL, "GET", "/pods", false), 200);
        authorizer_set_authorities(authorizer, "another ca");
        EXPECT_EQ(ask(authorizer, good, NULL, "GET", "/pods", false), 401);
        authorizer_free(authorizer);
}

TEST(only_administrators_may_act_on_a_node_without_an_api_server)
{
        Authorizer *authorizer =
                make_authorizer(&(AuthorizerSpec){ .is_alone = true, .has_access_reviews = true });
        cleanup_free char *admin = make_ticket("admin", "system:masters", LATER, key);
        cleanup_free char *jane = make_ticket("jane", "users", LATER, key);

        server.is_away = true;
        EXPECT_EQ(ask(authorizer, admin, NULL, "POST", "/exec/a/b/c", true), 200);
        EXPECT_EQ(ask(authorizer, jane, NULL, "POST", "/exec/a/b/c", true), 500);
        server.is_away = false;
        authorizer_free(authorizer);
}

static void reply(const char *json) {
        AccessCheck *check = server.check;

        REQUIRE(check);
        server.check = NULL;
        access_check_reviewed(check, json);
}

TEST(each_request_is_authorized_separately)
{
        Authorizer *authorizer = make_authorizer(
                &(AuthorizerSpec){ .has_token_reviews = true, .has_access_reviews = true });

        server.n = 0;
        EXPECT_EQ(ask(authorizer, NULL, "t", "GET", "/containerLogs/a/b/c", false), 0);
        EXPECT_EQ(server.kind, ACCESS_REVIEW_OF_TOKEN);
        reply("{\"status\":{\"authenticated\":true,\"user\":{\"username\":\"jane\"}}}");
        EXPECT_EQ(server.kind, ACCESS_REVIEW_OF_ACCESS);
        EXPECT(strstr(server.body, "\"verb\":\"get\"") && strstr(server.body, "\"proxy\""));
        reply("{\"status\":{\"allowed\":true}}");
        EXPECT_EQ(answered.status, 200);
        EXPECT_EQ(ask(authorizer, NULL, "t", "GET", "/containerLogs/a/b/d", false), 200);
        EXPECT_EQ(server.n, 2);
        /* Permission to read does not include permission to run commands. */
        EXPECT_EQ(ask(authorizer, NULL, "t", "GET", "/exec/a/b/c", true), 0);
        EXPECT(strstr(server.body, "\"verb\":\"create\""));
        reply("{\"status\":{\"allowed\":false}}");
        EXPECT_EQ(answered.status, 403);
        EXPECT(strstr(answered.message, "user=jane, verb=create"));
        EXPECT_EQ(ask(authorizer, NULL, "t", "GET", "/exec/a/b/c", true), 403);
        EXPECT_EQ(ask(authorizer, NULL, "t", "GET", "/stats/summary", false), 0);
        reply("{\"error\":\"it is gone\"}");
        EXPECT_EQ(answered.status, 500);
        authorizer_free(authorizer);
}

TEST(requests_get_503_while_the_api_server_cannot_be_queried)
{
        Authorizer *authorizer = make_authorizer(
                &(AuthorizerSpec){ .has_token_reviews = true, .has_access_reviews = true });
        cleanup_free char *jane = make_ticket("jane", "users", LATER, key);

        server.is_away = true;
        EXPECT_EQ(ask(authorizer, jane, NULL, "GET", "/pods", false), 503);
        EXPECT(strstr(answered.message, "Authorization error (user=jane"));
        EXPECT_EQ(ask(authorizer, NULL, "t", "GET", "/pods", false), 503);
        server.is_away = false;
        authorizer_free(authorizer);
}

TEST(number_of_pending_reviews_is_limited)
{
        enum {
                MANY = 16
        };
        Authorizer *authorizer = make_authorizer(&(AuthorizerSpec){ .has_token_reviews = true });
        AccessCheck *checks[MANY], *last;
        char token[16];

        for (unsigned i = 0; i <= MANY; i++) {
                const AccessQuestion question = { .token = token };

                (void) snprintf(token, sizeof(token), "%u", i);
                answered.status = 0;
                REQUIRE(authorizer_check(authorizer, &question, on_test_answer, NULL,
                                         i < MANY ? &checks[i] : &last) == 0);
        }
        EXPECT_EQ(answered.status, 429);
        for (unsigned i = 0; i < MANY; i++)
                access_check_cancel(checks[i]);
        EXPECT_EQ(ask(authorizer, NULL, "again", "GET", "/pods", false), 0);
        reply("{\"status\":{}}");
        EXPECT_EQ(answered.status, 401);
        authorizer_free(authorizer);
}
