/* SPDX-License-Identifier: Apache-2.0 */
/* Requests to an API server, including faults of the server. */

#include "agent/kubeclient/json-view.h"
#include "tests/component/kube-server.h"

#include <dirent.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

static char *word_of(const Answer *answer, const char *key) {
        return json_view_message(json_view_member((JsonView){ answer->body, answer->length }, key));
}

static long number_of(const Answer *answer, const char *key) {
        return json_view_number(json_view_member((JsonView){ answer->body, answer->length }, key));
}

#define EXPECT_WORD(answer, key, expected)                       \
        do {                                                     \
                cleanup_free char *word_ = word_of(answer, key); \
                EXPECT_STREQ(word_, expected);                   \
        } while (0)

static void expect_protocol(const char *option, const char *protocol) {
        cleanup_answer Answer answer = { 0 };
        World world;

        world_init(&world, option);
        world_connect(&world);
        EXPECT(!kube_client_state(world.client).is_reached);
        ask(&world, &(KubeRequestSpec){ .path = "/echo?a=b%20c" }, &answer);
        EXPECT_STREQ(answer.error, NULL);
        EXPECT_EQ(answer.status, 200);
        EXPECT_WORD(&answer, "method", "GET");
        EXPECT_WORD(&answer, "path", "/echo?a=b%20c");
        EXPECT_WORD(&answer, "protocol", protocol);
        EXPECT_WORD(&answer, "accept", "application/json");
        EXPECT_WORD(&answer, "authorization", NULL);
        EXPECT(strstr(answer.body, "\"user-agent\": \"mainstay/"));
        EXPECT(kube_client_state(world.client).is_reached);
        EXPECT(kube_client_state(world.client).since > 0);
        world_done(&world);
}

TEST(requests_use_http_2)
{ expect_protocol(NULL, "h2"); }

TEST(requests_fall_back_to_http_1)
{ expect_protocol("--http1", "http/1.1"); }

TEST(bodies_are_sent_with_every_method)
{
        static const struct {
                const char *method, *type, *body;
        } cases[] = {
                { "POST", NULL, "{\"a\":1}" },
                { "PUT", NULL, "{\"a\":2}" },
                { "PATCH", "application/strategic-merge-patch+json", "{\"a\":3}" },
                { "DELETE", NULL, "{\"kind\":\"DeleteOptions\"}" },
                { "DELETE", NULL, NULL },
        };
        cleanup_answer Answer answer = { 0 };
        World world;

        world_init(&world, NULL);
        world_connect(&world);
        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                ask(&world,
                    &(KubeRequestSpec){ .method = cases[i].method,
                                        .path = "/echo",
                                        .content_type = cases[i].type,
                                        .body = cases[i].body,
                                        .body_length = strlen(strna(cases[i].body)) },
                    &answer);
                EXPECT_EQ(answer.status, 200);
                EXPECT_WORD(&answer, "method", cases[i].method);
                EXPECT_WORD(&answer, "body", cases[i].body);
                EXPECT_WORD(&answer, "content-type",
                            cases[i].type   ? cases[i].type
                            : cases[i].body ? "application/json"
                                            : NULL);
                EXPECT_WORD(&answer, "expect", NULL);
        }
        EXPECT_EQ(kube_client_state(world.client).n_requests, N_ELEMENTS(cases));
        world_done(&world);
}

static int count_data(const char *data, size_t length, void *userdata) {
        ((Answer *) userdata)->length += length;
        return 0;
}

static size_t count_begun(const Answer *watches, size_t n) {
        size_t begun = 0;

        for (size_t i = 0; i < n; i++)
                begun += watches[i].length > 0;
        return begun;
}

TEST(a_hundred_watches_share_a_connection)
{
        enum {
                N = 100
        };
        static Answer watches[N];
        KubeRequest *requests[N];
        cleanup_answer Answer answer = { 0 };
        World world;

        world_init(&world, NULL);
        world_connect(&world);
        memset(watches, 0, sizeof(watches));
        for (size_t i = 0; i < N; i++)
                REQUIRE(kube_client_start_request(world.client,
                                                  &(KubeRequestSpec){ .method = "GET",
                                                                      .path = "/hold",
                                                                      .deadline_usec = UINT64_MAX,
                                                                      .on_data = count_data,
                                                                      .on_done = answer_keep,
                                                                      .userdata = &watches[i] },
                                                  &requests[i], NULL) >= 0);
        WAIT_UNTIL(&world, count_begun(watches, N) == N);
        EXPECT_EQ(count_begun(watches, N), N);
        ask(&world, &(KubeRequestSpec){ .path = "/echo" }, &answer);
        EXPECT_EQ(number_of(&answer, "connection"), 1);
        for (size_t i = 0; i < N; i++) {
                EXPECT(!watches[i].is_done);
                kube_request_cancel(requests[i]);
        }
        world_done(&world);
}

static void count_opened(void *userdata) {
        ((Answer *) userdata)->status = 200;
}

/* The server sends 'length' bytes on each watch, and then nothing. */
static void expect_received(World *world, Answer *watches, size_t n, size_t length) {
        size_t total = 0;
        char line[32];
        int l = snprintf(line, sizeof(line), "%zu\n", length);

        REQUIRE(write(world->server_fd, line, (size_t) l) == l);
        for (size_t i = 0; i < n; i++)
                watches[i].length = 0;
        while (total < n * length && sd_event_run(world->event, PATIENCE_SEC * USEC_PER_SEC) > 0) {
                total = 0;
                for (size_t i = 0; i < n; i++)
                        total += watches[i].length;
        }
        EXPECT_EQ(total, n * length);
}

static void expect_events_arrive_whole(const char *option) {
        static const size_t lengths[] = { 500, 1000, 1024, 2048, 2049, 8000, 16384, 65536, 300000 };
        enum {
                N = 3
        };
        Answer watches[N] = { { 0 } };
        World world;

        world_init(&world, option);
        world_connect(&world);
        for (size_t i = 0; i < N; i++) {
                REQUIRE(kube_client_start_request(world.client,
                                                  &(KubeRequestSpec){ .method = "GET",
                                                                      .path = "/sized",
                                                                      .deadline_usec = UINT64_MAX,
                                                                      .is_mostly_idle = true,
                                                                      .on_open = count_opened,
                                                                      .on_data = count_data,
                                                                      .on_done = answer_keep,
                                                                      .userdata = &watches[i] },
                                                  NULL, NULL) >= 0);
                WAIT_UNTIL(&world, watches[i].status == 200);
        }
        for (size_t i = 0; i < N_ELEMENTS(lengths); i++)
                expect_received(&world, watches, N, lengths[i]);
        world_done(&world);
}

TEST(each_event_is_delivered_before_the_next_one_arrives)
{ expect_events_arrive_whole(NULL); }

TEST(each_event_is_delivered_before_the_next_one_arrives_over_http_1)
{ expect_events_arrive_whole("--http1"); }

TEST(failed_request_is_reported_with_a_message)
{
        cleanup_answer Answer answer = { 0 };
        World world;

        world_init(&world, NULL);
        world_connect(&world);
        ask(&world, &(KubeRequestSpec){ .path = "/big/65" }, &answer);
        EXPECT(answer.error && strstr(answer.error, "the response is too long"));
        ask(&world, &(KubeRequestSpec){ .path = "/big/64" }, &answer);
        EXPECT_STREQ(answer.error, NULL);
        EXPECT_EQ(answer.length, KUBE_RESPONSE_MAX);
        ask(&world, &(KubeRequestSpec){ .path = "/cut" }, &answer);
        EXPECT(answer.error && strstr(answer.error, world.url));
        EXPECT_EQ(answer.status, 0);
        EXPECT(kube_client_state(world.client).is_reached);
        ask(&world, &(KubeRequestSpec){ .path = "/silent", .deadline_usec = 300 * USEC_PER_MSEC },
            &answer);
        EXPECT(answer.error != NULL);
        EXPECT(!kube_client_state(world.client).is_reached);
        EXPECT_STREQ(kube_client_state(world.client).last_error, answer.error);
        /* no response: the next request uses a new connection */
        ask(&world, &(KubeRequestSpec){ .path = "/echo" }, &answer);
        EXPECT_EQ(number_of(&answer, "connection"), 2);
        EXPECT_STREQ(kube_client_state(world.client).last_error, NULL);
        world_kill(&world);
        ask(&world, &(KubeRequestSpec){ .path = "/echo" }, &answer);
        EXPECT(answer.error && strncmp(answer.error, world.url, strlen(world.url)) == 0);
        EXPECT(!kube_client_state(world.client).is_reached);
        world_done(&world);
}

/* The deadline of the other request is later than the end of this test. */
TEST(request_without_a_response_fails_all_requests_sent_before_it)
{
        World world;
        Answer answer = { 0 }, other = { 0 };

        world_init(&world, NULL);
        world_connect(&world);
        REQUIRE(kube_client_start_request(world.client,
                                          &(KubeRequestSpec){ .method = "GET",
                                                              .path = "/silent",
                                                              .deadline_usec = UINT64_MAX,
                                                              .on_done = answer_keep,
                                                              .userdata = &other },
                                          NULL, NULL) >= 0);
        ask(&world, &(KubeRequestSpec){ .path = "/silent", .deadline_usec = USEC_PER_SEC },
            &answer);
        EXPECT(answer.error && strstr(answer.error, "no response in time"));
        WAIT_UNTIL(&world, other.is_done);
        EXPECT(other.error && strstr(other.error, "no longer answers on this connection"));
        EXPECT_STREQ(kube_client_state(world.client).last_error, answer.error);
        answer_done(&answer);
        answer_done(&other);
        world_done(&world);
}

/* Other requests are answered in the meantime: the server is only slow, so the connection is
 * kept. */
TEST(slow_response_does_not_abandon_a_connection_that_answers)
{
        cleanup_answer Answer answer = { 0 }, slow = { 0 };
        World world;

        world_init(&world, NULL);
        world_connect(&world);
        ask(&world, &(KubeRequestSpec){ .path = "/echo" }, &answer);
        REQUIRE(kube_client_start_request(world.client,
                                          &(KubeRequestSpec){ .method = "GET",
                                                              .path = "/silent",
                                                              .deadline_usec = 10 * USEC_PER_SEC,
                                                              .on_done = answer_keep,
                                                              .userdata = &slow },
                                          NULL, NULL) >= 0);
        ask(&world, &(KubeRequestSpec){ .path = "/echo" }, &answer);
        EXPECT(!slow.is_done);
        WAIT_UNTIL(&world, slow.is_done);
        EXPECT(slow.error && strstr(slow.error, "no response in time"));
        EXPECT(kube_client_state(world.client).is_reached);
        ask(&world, &(KubeRequestSpec){ .path = "/echo" }, &answer);
        EXPECT_EQ(number_of(&answer, "connection"), 1);
        world_done(&world);
}

TEST(invalid_request_is_refused_at_once)
{
        static const KubeRequestSpec calls[] = {
                { .method = "BREW", .path = "/echo" },
                { .method = "GET", .path = "echo" },
                { .method = "GET", .path = "/a b" },
                { .method = "GET", .path = "/a\r\nX: y" },
        };
        World world;

        world_init(&world, NULL);
        world_connect(&world);
        for (size_t i = 0; i < N_ELEMENTS(calls); i++) {
                cleanup_error Error error = ERROR_NULL;
                KubeRequest *request = NULL;

                EXPECT_EQ(kube_client_start_request(world.client, &calls[i], &request, &error),
                          -EINVAL);
                EXPECT(error.message != NULL);
        }
        EXPECT_EQ(kube_client_state(world.client).n_requests, 0);
        world_done(&world);
}

TEST(refused_request_is_reported_with_body_and_retry_after)
{
        cleanup_answer Answer answer = { 0 };
        cleanup_free char *sentence = NULL;
        World world;

        world_init(&world, NULL);
        world_connect(&world);
        ask(&world, &(KubeRequestSpec){ .path = "/status/429/7" }, &answer);
        EXPECT_EQ(answer.status, 429);
        EXPECT_EQ(answer.retry_after_usec, 7 * USEC_PER_SEC);
        sentence = kube_response_describe_error(
                &(KubeResponse){ .status = 429, .body = answer.body, .length = answer.length });
        EXPECT_STREQ(sentence, "429 Too Many Requests: it is \"so\"");
        ask(&world, &(KubeRequestSpec){ .path = "/status/404", .on_data = count_data }, &answer);
        EXPECT_EQ(answer.status, 404);
        EXPECT_EQ(number_of(&answer, "code"), 404);
        ask(&world, &(KubeRequestSpec){ .path = "/moved" }, &answer);
        EXPECT_EQ(answer.status, 302);
        world_done(&world);
}

TEST(silent_stream_is_ended_by_its_idle_timeout)
{
        cleanup_answer Answer answer = { 0 };
        World world;

        world_init(&world, NULL);
        world_connect(&world);
        ask(&world, &(KubeRequestSpec){ .path = "/echo" }, &answer); /* the handshake takes long */
        ask(&world,
            &(KubeRequestSpec){ .path = "/hold",
                                .idle_timeout_usec = 3 * USEC_PER_SEC,
                                .deadline_usec = UINT64_MAX,
                                .on_data = count_data },
            &answer);
        EXPECT(answer.error && strstr(answer.error, "no data for too long"));
        EXPECT(kube_client_state(world.client).is_reached);
        world_done(&world);
}

/* ---- calls from callbacks ---- */

typedef struct Inner {
        World *world;
        KubeRequest *other;
        unsigned n_data, n_done;
        bool frees_client;
        Answer answer;
} Inner;

static int on_inner_data(const char *data, size_t length, void *userdata) {
        Inner *inner = userdata;

        if (inner->n_data++ > 0)
                return 0;
        inner->other = kube_request_cancel(inner->other);
        if (inner->frees_client)
                inner->world->client = kube_client_free(inner->world->client);
        else
                REQUIRE(kube_client_start_request(inner->world->client,
                                                  &(KubeRequestSpec){ .method = "GET",
                                                                      .path = "/echo",
                                                                      .on_done = answer_keep,
                                                                      .userdata = &inner->answer },
                                                  &inner->other, NULL) >= 0);
        return 0;
}

static void on_inner_done(const KubeResponse *answer, void *userdata) {
        Inner *inner = userdata;

        inner->n_done++;
        if (inner->frees_client)
                inner->world->client = kube_client_free(inner->world->client);
}

static void begin_inner(Inner *inner, const char *path,
                        int (*on_data)(const char *, size_t, void *), KubeRequest **ret) {
        REQUIRE(kube_client_start_request(inner->world->client,
                                          &(KubeRequestSpec){ .method = "GET",
                                                              .path = path,
                                                              .on_data = on_data,
                                                              .on_done = on_inner_done,
                                                              .userdata = inner },
                                          ret, NULL) >= 0);
}

TEST(callback_may_start_and_cancel_other_requests)
{
        World world;
        Inner inner = { .world = &world };
        KubeRequest *request = NULL;

        world_init(&world, NULL);
        world_connect(&world);
        begin_inner(&inner, "/silent", NULL, &inner.other);
        begin_inner(&inner, "/hold", on_inner_data, &request);
        WAIT_UNTIL(&world, inner.answer.is_done);
        EXPECT_EQ(inner.answer.status, 200);
        EXPECT_EQ(inner.n_done, 0);
        kube_request_cancel(request);
        answer_done(&inner.answer);
        world_done(&world);
}

static void on_second_done(const KubeResponse *answer, void *userdata) {
        Inner *inner = userdata;

        inner->other = kube_request_cancel(inner->other);
        inner->answer.is_done = true;
}

/* The first request has a deadline. The second one ends together with it, and its callback is
 * called first. */
TEST(callback_may_cancel_another_request_that_fails_with_its_connection)
{
        static const KubeRequestSpec silent = { .method = "GET", .path = "/silent" };
        KubeRequestSpec first = silent, second = silent;
        World world;
        Inner inner = { .world = &world };

        world_init(&world, NULL);
        world_connect(&world);
        first.deadline_usec = USEC_PER_SEC;
        first.on_done = on_inner_done;
        second.deadline_usec = UINT64_MAX;
        second.on_done = on_second_done;
        first.userdata = second.userdata = &inner;
        REQUIRE(kube_client_start_request(world.client, &second, NULL, NULL) >= 0);
        REQUIRE(kube_client_start_request(world.client, &first, &inner.other, NULL) >= 0);
        WAIT_UNTIL(&world, inner.answer.is_done);
        EXPECT_EQ(inner.n_done, 0);
        world_done(&world);
        EXPECT_EQ(inner.n_done, 0);
}

TEST(callback_may_free_the_client)
{
        static const char *const paths[] = { "/hold", "/echo" };

        for (size_t i = 0; i < N_ELEMENTS(paths); i++) {
                World world;
                Inner inner = { .world = &world, .frees_client = true };
                KubeRequest *request = NULL;

                world_init(&world, NULL);
                world_connect(&world);
                begin_inner(&inner, "/silent", NULL, &inner.other);
                begin_inner(&inner, paths[i], i == 0 ? on_inner_data : NULL, &request);
                WAIT_UNTIL(&world, world.client == NULL);
                EXPECT_EQ(inner.n_done, i);
                REQUIRE(sd_event_run(world.event, 0) >= 0);
                world_done(&world);
        }
}

/* ---- the gate ---- */

typedef struct Gatekeeper {
        KubeGateVerdict verdict;
        unsigned n_asked;
        unsigned status; /* status of the last response */
} Gatekeeper;

static KubeGateVerdict decide(const KubeResponse *response, void *userdata) {
        Gatekeeper *keeper = userdata;

        keeper->n_asked++;
        keeper->status = response->status;
        return response->error || response->status >= 500 ? KUBE_GATE_FAILS : keeper->verdict;
}

static void guard(World *world, Gatekeeper *keeper, const char *path) {
        REQUIRE(kube_client_set_gate(world->client, &(KubeGate){ .path = path,
                                                                 .on_response = decide,
                                                                 .userdata = keeper }) >= 0);
}

static void expect_log(World *world, const char *expected) {
        cleanup_answer Answer answer = { 0 };

        ask(world, &(KubeRequestSpec){ .path = "/log" }, &answer);
        EXPECT_STREQ(answer.body, expected);
}

static void begin(World *world, const char *path, Answer *answer) {
        REQUIRE(kube_client_start_request(world->client,
                                          &(KubeRequestSpec){ .method = "GET",
                                                              .path = path,
                                                              .on_done = answer_keep,
                                                              .userdata = answer },
                                          NULL, NULL) >= 0);
}

static void expect_order_of_gate(const char *option) {
        Answer answers[3] = { 0 };
        Gatekeeper keeper = { .verdict = KUBE_GATE_PASSES };
        World world;

        world_init(&world, option);
        world_connect(&world);
        guard(&world, &keeper, "/status/403");
        for (size_t i = 0; i < N_ELEMENTS(answers); i++)
                begin(&world, "/echo", &answers[i]);
        for (size_t i = 0; i < N_ELEMENTS(answers); i++) {
                WAIT_UNTIL(&world, answers[i].is_done);
                EXPECT_EQ(answers[i].status, 200);
                answer_done(&answers[i]);
        }
        EXPECT_EQ(keeper.n_asked, 1);
        EXPECT_EQ(keeper.status, 403);
        expect_log(&world, "GET /status/403\nGET /echo\nGET /echo\nGET /echo");
        world_done(&world);
}

TEST(requests_wait_until_the_gate_request_is_answered)
{ expect_order_of_gate(NULL); }

TEST(requests_wait_until_the_gate_request_is_answered_over_http_1)
{ expect_order_of_gate("--http1"); }

TEST(requests_fail_while_the_gate_request_fails)
{
        cleanup_answer Answer answer = { 0 };
        Gatekeeper keeper = { .verdict = KUBE_GATE_PASSES };
        World world;

        world_init(&world, NULL);
        world_connect(&world);
        guard(&world, &keeper, "/once/a/2");
        for (unsigned i = 1; i <= 2; i++) {
                ask(&world, &(KubeRequestSpec){ .path = "/echo" }, &answer);
                EXPECT_EQ(answer.status, 503);
                EXPECT_STREQ(answer.body, "");
                EXPECT_EQ(keeper.n_asked, i);
        }
        ask(&world, &(KubeRequestSpec){ .path = "/echo" }, &answer);
        EXPECT_EQ(answer.status, 200);
        world_kill(&world);
        ask(&world, &(KubeRequestSpec){ .path = "/echo" }, &answer);
        EXPECT(answer.error != NULL);
        ask(&world, &(KubeRequestSpec){ .path = "/echo" }, &answer);
        EXPECT(answer.error && strncmp(answer.error, world.url, strlen(world.url)) == 0);
        EXPECT(keeper.n_asked > 3);
        EXPECT(!kube_client_state(world.client).is_reached);
        world_done(&world);
}

TEST(requests_that_waited_for_another_server_are_not_sent)
{
        cleanup_answer Answer answer = { 0 };
        Gatekeeper keeper = { .verdict = KUBE_GATE_REJECTS };
        World world;

        world_init(&world, NULL);
        world_connect(&world);
        guard(&world, &keeper, "/status/404");
        ask(&world, &(KubeRequestSpec){ .path = "/echo" }, &answer);
        EXPECT(answer.error && strstr(answer.error, "another one"));
        expect_log(&world, "GET /status/404");
        EXPECT_EQ(keeper.n_asked, 1);
        world_done(&world);
}

TEST(request_that_waits_may_be_cancelled)
{
        cleanup_answer Answer answer = { 0 };
        Gatekeeper keeper = { .verdict = KUBE_GATE_PASSES };
        KubeRequest *request = NULL;
        World world;

        world_init(&world, NULL);
        world_connect(&world);
        guard(&world, &keeper, "/status/403");
        begin(&world, "/echo", &answer);
        REQUIRE(kube_client_start_request(world.client,
                                          &(KubeRequestSpec){ .method = "GET",
                                                              .path = "/never",
                                                              .on_done = answer_keep,
                                                              .userdata = &answer },
                                          &request, NULL) >= 0);
        EXPECT(!kube_request_cancel(request));
        WAIT_UNTIL(&world, answer.is_done);
        expect_log(&world, "GET /status/403\nGET /echo");
        world_done(&world);
}

/* ---- certificates ---- */

static void use_certificate(World *world, const char *name) {
        char certificate[32], key[32];

        (void) snprintf(certificate, sizeof(certificate), "%s.crt", name);
        (void) snprintf(key, sizeof(key), "%s.key", name);
        free(world->config.certificate_file);
        free(world->config.key_file);
        world->config.certificate_file = world_path(certificate);
        world->config.key_file = world_path(key);
}

TEST(changed_certificate_is_used_by_the_next_request)
{
        cleanup_answer Answer answer = { 0 }, watch = { 0 };
        cleanup_error Error error = ERROR_NULL;
        KubeRequest *request = NULL;
        World world;

        world_init(&world, NULL);
        use_certificate(&world, "one");
        world_connect(&world);
        EXPECT(kube_client_state(world.client).not_after > now_realtime_usec());
        REQUIRE(kube_client_start_request(world.client,
                                          &(KubeRequestSpec){ .method = "GET",
                                                              .path = "/hold",
                                                              .on_data = count_data,
                                                              .on_done = answer_keep,
                                                              .userdata = &watch },
                                          &request, NULL) >= 0);
        WAIT_UNTIL(&world, watch.length > 0);
        ask(&world, &(KubeRequestSpec){ .path = "/echo" }, &answer);
        EXPECT_WORD(&answer, "peer", "system:node:one");
        EXPECT_EQ(kube_client_reload(world.client, &world.config, &error), 0);

        /* only one file is replaced: the key does not match */
        free(world.config.key_file);
        world.config.key_file = world_path("two.key");
        EXPECT_EQ(kube_client_reload(world.client, &world.config, &error), -EINVAL);
        EXPECT(error.message && strstr(error.message, "the key is not that of the certificate"));
        ask(&world, &(KubeRequestSpec){ .path = "/echo" }, &answer);
        EXPECT_WORD(&answer, "peer", "system:node:one");

        use_certificate(&world, "two");
        EXPECT_EQ(kube_client_reload(world.client, &world.config, NULL), 1);
        ask(&world, &(KubeRequestSpec){ .path = "/echo" }, &answer);
        EXPECT_WORD(&answer, "peer", "system:node:two");
        EXPECT(!watch.is_done);
        kube_request_cancel(request);
        world_done(&world);
}

TEST(server_of_an_unknown_authority_is_rejected)
{
        cleanup_answer Answer answer = { 0 };
        World world;

        world_init(&world, NULL);
        free(world.config.authority_file);
        world.config.authority_file = world_path("other-ca.crt");
        world_connect(&world);
        ask(&world, &(KubeRequestSpec){ .path = "/echo" }, &answer);
        EXPECT(answer.error != NULL);
        EXPECT_STREQ(kube_client_state(world.client).last_error, answer.error);
        free(world.config.authority_file);
        world.config.authority_file = world_path("ca.crt");
        EXPECT_EQ(kube_client_reload(world.client, &world.config, NULL), 1);
        ask(&world, &(KubeRequestSpec){ .path = "/echo" }, &answer);
        EXPECT_EQ(answer.status, 200);
        world_done(&world);
}

TEST(tls_server_name_is_verified)
{
        static const struct {
                const char *name;
                bool is_insecure, is_fine;
        } cases[] = { { "kubernetes", false, true },
                      { "other.test", false, false },
                      { "other.test", true, true } };
        World world;

        world_init(&world, NULL);
        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                cleanup_answer Answer answer = { 0 };

                free(world.config.tls_server_name);
                world.config.tls_server_name = strdup(cases[i].name);
                world.config.insecure = cases[i].is_insecure;
                world_connect(&world);
                ask(&world, &(KubeRequestSpec){ .path = "/echo" }, &answer);
                EXPECT_EQ(answer.status, cases[i].is_fine ? 200 : 0);
                if (cases[i].is_fine)
                        EXPECT_WORD(&answer, ":authority", world.url + strlen("https://"));
                world.client = kube_client_free(world.client);
        }
        world_done(&world);
}

/* ---- tokens ---- */

static void write_token(const char *token) {
        cleanup_free char *path = world_path("token");

        REQUIRE(write_file_atomic_at(AT_FDCWD, path, token, strlen(token), 0600) >= 0);
}

static unsigned ask_with_token(World *world, const char *path) {
        cleanup_answer Answer answer = { 0 };

        ask(world, &(KubeRequestSpec){ .path = path }, &answer);
        return answer.status;
}

TEST(changed_token_file_is_read_again)
{
        cleanup_free char *path = NULL, *long_token = NULL;
        World world;

        world_init(&world, NULL);
        world.config.token = strdup("spare-7f3");
        world.config.token_file = path = world_path("token");
        path = NULL;
        world_connect(&world);
        EXPECT(strstr(kube_client_state(world.client).credentials_error, "No such file"));
        EXPECT_EQ(ask_with_token(&world, "/token/spare-7f3"), 200);
        write_token("first-9c1\n");
        EXPECT_EQ(ask_with_token(&world, "/token/first-9c1"), 200);
        EXPECT_STREQ(kube_client_state(world.client).credentials_error, NULL);
        write_token("");
        EXPECT_EQ(ask_with_token(&world, "/token/first-9c1"), 200);
        EXPECT(strstr(kube_client_state(world.client).credentials_error, "holds no token"));
        long_token = calloc(1, MIB + 1);
        REQUIRE(long_token);
        memset(long_token, 'x', MIB);
        write_token(long_token);
        EXPECT_EQ(ask_with_token(&world, "/token/first-9c1"), 200);
        EXPECT(strstr(kube_client_state(world.client).credentials_error, "too large"));
        write_token("a\nb");
        EXPECT_EQ(ask_with_token(&world, "/token/first-9c1"), 200);
        write_token("second-2d8");
        EXPECT_EQ(ask_with_token(&world, "/token/first-9c1"), 401);
        EXPECT_EQ(ask_with_token(&world, "/token/second-2d8"), 200);
        EXPECT_STREQ(kube_client_state(world.client).credentials_error, NULL);
        world_done(&world);
}

/* ---- socket options ---- */

static bool has_options(int fd) {
        int alive = 0, timeout = 0;
        socklen_t length = sizeof(int);

        return getsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &alive, &length) == 0 && alive &&
               getsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout, &length) == 0 &&
               timeout > 0 && timeout <= 30000;
}

TEST(every_connection_has_keepalive_and_user_timeout)
{
        cleanup_answer Answer answer = { 0 };
        cleanup_closedir DIR *dir = NULL;
        unsigned n = 0;
        World world;

        world_init(&world, NULL);
        world_connect(&world);
        ask(&world, &(KubeRequestSpec){ .path = "/echo" }, &answer);
        dir = opendir("/proc/self/fd");
        REQUIRE(dir);
        for (struct dirent *entry; (entry = readdir(dir));)
                n += has_options((int) strtol(entry->d_name, NULL, 10));
        EXPECT_EQ(n, 1);
        world_done(&world);
}
