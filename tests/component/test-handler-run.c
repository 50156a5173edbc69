/* SPDX-License-Identifier: Apache-2.0 */
/* Network requests to containers, mostly to servers that misbehave. */

#include "agent/pods/probe/handler-run.h"

#include "common/clock.h"
#include "tests/component/probe-server.h"

#include <dlfcn.h>
#include <netdb.h>
#include <semaphore.h>

static struct {
        sem_t has_begun, may_end, has_ended;
        bool was_let_go; /* answered before the lookup timed out */
} lookup;

/* Replaces the C library's function: for one name, the DNS server responds only when the test
 * requests it. */
int getaddrinfo(const char *name, const char *service, const struct addrinfo *req,
                struct addrinfo **pai) {
        static const char symbol[] = "getaddrinfo";
        struct timespec patience;
        __typeof__(&getaddrinfo) real = NULL;
        void *next;

        if (name && strcmp(name, "two.test") == 0) { /* only the second address responds */
                struct addrinfo *second = NULL;
                int r = getaddrinfo("127.0.0.2", service, req, pai);

                if (r == 0)
                        r = getaddrinfo("127.0.0.1", service, req, &second);
                if (r == 0)
                        (*pai)->ai_next = second;
                return r;
        }
        if (!name || strcmp(name, "slow.test") != 0) {
                next = dlsym(RTLD_NEXT, symbol);
                memcpy(&real, &next, sizeof(real));
                return real(name, service, req, pai);
        }
        (void) sem_post(&lookup.has_begun);
        (void) clock_gettime(CLOCK_REALTIME, &patience);
        patience.tv_sec += 180;
        lookup.was_let_go = sem_timedwait(&lookup.may_end, &patience) == 0;
        (void) sem_post(&lookup.has_ended);
        return EAI_NONAME;
}

typedef struct World {
        sd_event *event;
        HttpClient *http;
        Server server;
        Container container;
        ContainerPort port;
        HandlerRun *action;
        bool is_done;
        HandlerResult result;
        char message[16 * 1024];
} World;

static void world_init(World *world, serve_t serve) {
        static char name[] = "web";

        *world = (World){ 0 };
        REQUIRE(sd_event_new(&world->event) >= 0);
        world->server = server_start(serve);
        world->port =
                (ContainerPort){ .name = name, .container_port = { true, world->server.port } };
        world->container.ports.items = &world->port;
        world->container.ports.n = 1;
}

static void world_done(World *world) {
        http_client_free(world->http);
        server_stop(&world->server);
        sd_event_unref(world->event);
}

static void on_done(HandlerResult result, const char *message, void *userdata) {
        World *world = userdata;

        world->is_done = true;
        world->result = result;
        (void) snprintf(world->message, sizeof(world->message), "%s", message);
        world->action = handler_run_free(world->action);
}

static void start_handler(World *world, const Handler *handler, uint64_t timeout_usec,
                          bool is_hook) {
        world->is_done = false;
        REQUIRE(handler_run_start(&(HandlerTarget){ .event = world->event,
                                                    .http = &world->http,
                                                    .container = &world->container,
                                                    .id = "none",
                                                    .address = "127.0.0.1" },
                                  &(HandlerRunSpec){ .handler = handler,
                                                     .timeout_usec = timeout_usec,
                                                     .is_hook = is_hook },
                                  on_done, world, &world->action) == 0);
        EXPECT(!world->is_done);
}

static void perform_handler(World *world, const Handler *handler, uint64_t timeout_usec,
                            bool is_hook) {
        uint64_t deadline = now_boottime_usec() + 180 * USEC_PER_SEC;

        start_handler(world, handler, timeout_usec, is_hook);
        while (!world->is_done && now_boottime_usec() < deadline)
                REQUIRE(sd_event_run(world->event, USEC_PER_SEC) >= 0);
        REQUIRE(world->is_done);
}

static void perform_http_get(World *world, const char *path, uint64_t timeout_usec, bool is_hook) {
        HttpGetAction http = { .path = (char *) (uintptr_t) path,
                               .port = { .number = { true, world->server.port } } };

        perform_handler(world, &(Handler){ .http_get = &http }, timeout_usec, is_hook);
}

TEST(an_unknown_port_name_is_an_error_and_not_a_failed_probe)
{
        static char name[] = "wbe", path[] = "/ok";
        HttpGetAction http = { .path = path, .port = { .text = name } };
        TcpSocketAction tcp = { .port = { .text = name } };
        const Handler handlers[] = { { .http_get = &http }, { .tcp_socket = &tcp } };
        World world;

        world_init(&world, serve_http);
        for (size_t i = 0; i < N_ELEMENTS(handlers); i++) {
                perform_handler(&world, &handlers[i], USEC_PER_SEC, /* is_hook= */ false);
                EXPECT_EQ(world.result, HANDLER_ERROR);
                EXPECT_STREQ(world.message, "the container does not have a port of the name 'wbe'");
        }
        world_done(&world);
}

TEST(http_statuses_give_the_same_results_as_in_kubernetes)
{
        static const struct {
                const char *path;
                HandlerResult result;
                const char *says;
        } cases[] = {
                { "/ok", HANDLER_SUCCEEDED, "fine" },
                { "/500", HANDLER_FAILED, "HTTP probe failed with statuscode: 500" },
                { "/here", HANDLER_SUCCEEDED, "fine" },
                { "/to-500", HANDLER_FAILED, "HTTP probe failed with statuscode: 500" },
                { "/loop", HANDLER_FAILED, "stopped after 10 redirects" },
                { "/away", HANDLER_WARNING,
                  "Probe terminated redirects, Response body: " }, /* to another host: not followed
                                                                    */
                { "/close", HANDLER_FAILED, "Get \"http://127.0.0.1:" },
                { "/garbage", HANDLER_FAILED, "Get \"http://127.0.0.1:" },
                { "/huge", HANDLER_SUCCEEDED, "xxxxx" },
                { "/cut", HANDLER_FAILED, "Get \"http://127.0.0.1:" },
        };
        World world;

        world_init(&world, serve_http);
        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                printf("%s\n", cases[i].path);
                perform_http_get(&world, cases[i].path, 20 * USEC_PER_SEC, false);
                EXPECT_EQ(world.result, cases[i].result);
                if (!strstr(world.message, cases[i].says))
                        EXPECT_STREQ(world.message, cases[i].says);
        }
        world_done(&world);
}

TEST(a_slow_server_fails_at_the_timeout)
{
        static const char *const paths[] = { "/hang", "/slow-header" };
        World world;

        world_init(&world, serve_http);
        for (size_t i = 0; i < N_ELEMENTS(paths); i++) {
                perform_http_get(&world, paths[i], 200 * USEC_PER_MSEC, false);
                EXPECT_EQ(world.result, HANDLER_FAILED);
                EXPECT(strstr(world.message, "context deadline exceeded"));
        }
        world_done(&world);
}

TEST(endless_trailers_are_cut_off)
{
        World world;

        world_init(&world, serve_http);
        perform_http_get(&world, "/trailers", 20 * USEC_PER_SEC, false);
        EXPECT_EQ(world.result, HANDLER_FAILED);
        EXPECT(!strstr(world.message, "deadline exceeded"));
        world_done(&world);
}

TEST(a_request_has_the_headers_of_its_handler)
{
        HttpHeader headers[] = { { (char[]){ "X-A" }, (char[]){ "b" } },
                                 { (char[]){ "Host" }, (char[]){ "example.com" } },
                                 { (char[]){ "X-Empty" }, NULL } };
        HttpGetAction http = { .path = (char[]){ "echo" },
                               .port = { .text = (char[]){ "web" } },
                               .host = (char[]){ "localhost" },
                               .http_headers = { headers, N_ELEMENTS(headers) } };
        World world;

        world_init(&world, serve_http);
        perform_handler(&world, &(Handler){ .http_get = &http }, 20 * USEC_PER_SEC, false);
        EXPECT_EQ(world.result, HANDLER_SUCCEEDED);
        EXPECT(strstr(world.message, "GET /echo HTTP/1.1\r\n"));
        EXPECT(strstr(world.message, "\r\nHost: example.com\r\n"));
        EXPECT(strstr(world.message, "\r\nX-A: b\r\n"));
        EXPECT(strstr(world.message, "\r\nX-Empty:\r\n"));
        EXPECT(strstr(world.message, "\r\nUser-Agent: kube-probe/"));
        EXPECT(strstr(world.message, "\r\nAccept: */*\r\n"));
        EXPECT(strstr(world.message, "\r\nConnection: close\r\n"));
        world_done(&world);
}

/* Performs a request with the headers "name: value"; world.message is the request that the server
 * received. */
static void echo_headers(World *world, const char *const lines[][2], size_t n, bool is_hook) {
        HttpHeader headers[16] = { 0 };
        HttpGetAction http = { .path = (char[]){ "echo" },
                               .port = { .text = (char[]){ "web" } },
                               .http_headers = { headers, n } };

        REQUIRE(n <= N_ELEMENTS(headers));
        for (size_t i = 0; i < n; i++)
                headers[i] = (HttpHeader){ (char *) (uintptr_t) lines[i][0],
                                           (char *) (uintptr_t) lines[i][1] };
        perform_handler(world, &(Handler){ .http_get = &http }, 20 * USEC_PER_SEC, is_hook);
        EXPECT_EQ(world->result, HANDLER_SUCCEEDED);
}

TEST(empty_accept_and_user_agent_are_not_sent)
{
        static const char *const empty[][2] = { { "accept", "" }, { "USER-AGENT", NULL } };
        static const char *const repeated[][2] = { { "Accept", "" },     { "Accept", "text/html" },
                                                   { "User-Agent", "" }, { "User-Agent", "x" },
                                                   { "Host", "" },       { "host", "two.test" } };
        static const char *const later[][2] = { { "Accept", "text/html" }, { "Accept", "" } };
        World world;

        world_init(&world, serve_http);
        for (int is_hook = 0; is_hook < 2; is_hook++) {
                echo_headers(&world, empty, N_ELEMENTS(empty), is_hook);
                EXPECT(!strcasestr(world.message, "\r\nAccept:"));
                EXPECT(!strcasestr(world.message, "\r\nUser-Agent:"));
                echo_headers(&world, repeated, N_ELEMENTS(repeated), is_hook);
                EXPECT(!strcasestr(world.message, "\r\nAccept:"));
                EXPECT(!strcasestr(world.message, "\r\nUser-Agent:"));
                EXPECT(strstr(world.message, "\r\nHost: 127.0.0.1:"));
                EXPECT(!strstr(world.message, "two.test"));
        }
        echo_headers(&world, later, N_ELEMENTS(later), false);
        EXPECT(strstr(world.message, "\r\nAccept: text/html\r\nAccept:\r\n"));
        EXPECT(strstr(world.message, "\r\nUser-Agent: kube-probe/"));
        echo_headers(&world, later, 0, true);
        EXPECT(strstr(world.message, "\r\nUser-Agent: kube-lifecycle/"));
        world_done(&world);
}

TEST(headers_are_the_same_as_those_of_the_kubelet)
{
        static const char *const lines[][2] = {
                { "x-forwarded-for", "a" },
                { "X-FORWARDED-FOR", "b" },
                { "user-agent", "one" },
                { "User-Agent", "two" },
                { "host", "one.test" },
                { "Host", "two.test" },
                { "Content-Length", "5" },
                { "Trailer", "X-A" },
                { "Transfer-Encoding", "chunked" },
        };
        World world;

        world_init(&world, serve_http);
        echo_headers(&world, lines, N_ELEMENTS(lines), false);
        EXPECT(strstr(world.message, "\r\nX-Forwarded-For: a\r\nX-Forwarded-For: b\r\n"));
        EXPECT(strstr(world.message, "\r\nUser-Agent: one\r\n"));
        EXPECT(strstr(world.message, "\r\nHost: one.test\r\n"));
        EXPECT(!strstr(world.message, "two"));
        EXPECT(!strstr(world.message, "\r\nContent-Length:"));
        EXPECT(!strstr(world.message, "\r\nTrailer:"));
        EXPECT(!strstr(world.message, "\r\nTransfer-Encoding:"));
        world_done(&world);
}

TEST(a_header_with_a_line_break_is_not_sent)
{
        static const char *const values[] = { "a\r\nX-Injected: b", "a\n\nGET /ok HTTP/1.1", "\r",
                                              "a\x7f" };
        static const char *const names[] = { "X-A", "Host", "User-Agent", "Accept" };
        World world;

        world_init(&world, serve_http);
        for (size_t i = 0; i < N_ELEMENTS(values) * N_ELEMENTS(names); i++) {
                const char *name = names[i / N_ELEMENTS(values)];
                HttpHeader header = { (char *) (uintptr_t) name,
                                      (char *) (uintptr_t) values[i % N_ELEMENTS(values)] };
                HttpGetAction http = { .path = (char[]){ "echo" },
                                       .port = { .text = (char[]){ "web" } },
                                       .http_headers = { &header, 1 } };

                for (int is_hook = 0; is_hook < 2; is_hook++) {
                        perform_handler(&world, &(Handler){ .http_get = &http }, 20 * USEC_PER_SEC,
                                        is_hook);
                        EXPECT_EQ(world.result, HANDLER_FAILED);
                        EXPECT(strstr(world.message, "net/http: invalid header field value for"));
                }
        }
        world_done(&world);
}

TEST(certificates_are_not_verified)
{
        HttpGetAction http = { .path = (char[]){ "/" }, .scheme = URI_SCHEME_HTTPS };
        World world;

        world_init(&world, serve_tls);
        http.port.number = (OptionalInt){ true, world.server.port };
        perform_handler(&world, &(Handler){ .http_get = &http }, 20 * USEC_PER_SEC, false);
        EXPECT_EQ(world.result, HANDLER_SUCCEEDED);
        EXPECT_STREQ(world.message, "fine");
        http.host = (char[]){ "two.test" };
        perform_handler(&world, &(Handler){ .http_get = &http }, 20 * USEC_PER_SEC, false);
        EXPECT_EQ(world.result, HANDLER_SUCCEEDED);
        EXPECT_STREQ(world.message, "fine");
        world_done(&world);
}

TEST(an_endless_handshake_does_not_block_the_loop)
{
        HttpGetAction http = { .path = (char[]){ "/" }, .scheme = URI_SCHEME_HTTPS };
        uint64_t begun;
        World world;

        world_init(&world, flood_with_handshake);
        http.port.number = (OptionalInt){ true, world.server.port };
        begun = now_boottime_usec();
        perform_handler(&world, &(Handler){ .http_get = &http }, USEC_PER_SEC, false);
        EXPECT_EQ(world.result, HANDLER_FAILED);
        EXPECT(now_boottime_usec() - begun < 60 * USEC_PER_SEC);
        world_done(&world);
}

TEST(a_hook_accepts_any_status_and_falls_back_to_plain_http)
{
        HttpGetAction http = { .path = (char[]){ "/500" }, .scheme = URI_SCHEME_HTTPS };
        World world;

        world_init(&world, serve_http);
        perform_http_get(&world, "/500", 0, /* is_hook= */ true);
        EXPECT_EQ(world.result, HANDLER_SUCCEEDED);
        perform_http_get(&world, "/close", 0, /* is_hook= */ true);
        EXPECT_EQ(world.result, HANDLER_FAILED);
        http.port.number = (OptionalInt){ true, world.server.port };
        perform_handler(&world, &(Handler){ .http_get = &http }, 20 * USEC_PER_SEC,
                        /* is_hook= */ true);
        EXPECT_EQ(world.result, HANDLER_SUCCEEDED);
        perform_handler(&world, &(Handler){ .http_get = &http }, 20 * USEC_PER_SEC,
                        /* is_hook= */ false);
        EXPECT_EQ(world.result, HANDLER_FAILED);
        world_done(&world);
}

TEST(an_accepted_connection_passes_a_tcp_probe)
{
        TcpSocketAction tcp = { .port = { .text = (char[]){ "web" } } };
        World world;

        world_init(&world, serve_http);
        perform_handler(&world, &(Handler){ .tcp_socket = &tcp }, 20 * USEC_PER_SEC, false);
        EXPECT_EQ(world.result, HANDLER_SUCCEEDED);
        EXPECT(!world.http);
        tcp.host = (char[]){ "localhost" };
        perform_handler(&world, &(Handler){ .tcp_socket = &tcp }, 20 * USEC_PER_SEC, false);
        EXPECT_EQ(world.result, HANDLER_SUCCEEDED);
        tcp.host = (char[]){ "no-such-host.invalid" };
        perform_handler(&world, &(Handler){ .tcp_socket = &tcp }, 20 * USEC_PER_SEC, false);
        EXPECT_EQ(world.result, HANDLER_FAILED);
        tcp.host = NULL;
        server_stop(&world.server);
        perform_handler(&world, &(Handler){ .tcp_socket = &tcp }, 20 * USEC_PER_SEC, false);
        EXPECT_EQ(world.result, HANDLER_FAILED);
        EXPECT(strstr(world.message, "connect: connection refused"));
        world.server = server_start(serve_http);
        world_done(&world);
}

TEST(a_grpc_health_status_is_the_probe_result)
{
        static const struct {
                const char *service;
                HandlerResult result;
                const char *says;
        } cases[] = {
                { NULL, HANDLER_SUCCEEDED, "service healthy" },
                { "some", HANDLER_SUCCEEDED, "service healthy" },
                { "not", HANDLER_FAILED, "service unhealthy (responded with \"NOT_SERVING\")" },
                { "code", HANDLER_FAILED, "error: health rpc probe failed: code 14: in words" },
                { "garbage", HANDLER_FAILED, "the response is malformed" },
                { "unimplemented", HANDLER_FAILED, "does not implement the grpc health protocol" },
                { "hang", HANDLER_FAILED, "timeout: health rpc did not complete within 1s" },
        };
        World world;

        world_init(&world, serve_grpc);
        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                GrpcAction grpc = { .port = { true, world.server.port },
                                    .service = (char *) (uintptr_t) cases[i].service };
                bool hangs = streq_ptr(cases[i].service, "hang");

                printf("%s\n", strna(cases[i].service));
                perform_handler(&world, &(Handler){ .grpc = &grpc },
                                hangs ? USEC_PER_SEC : 20 * USEC_PER_SEC, false);
                EXPECT_EQ(world.result, cases[i].result);
                if (!strstr(world.message, cases[i].says))
                        EXPECT_STREQ(world.message, cases[i].says);
        }
        world_done(&world);
}

TEST(an_endless_grpc_response_does_not_block_the_loop)
{
        GrpcAction grpc = { .service = (char[]){ "nothing" } };
        uint64_t begun;
        World world;

        world_init(&world, serve_grpc);
        grpc.port = (OptionalInt){ true, world.server.port };
        begun = now_boottime_usec();
        perform_handler(&world, &(Handler){ .grpc = &grpc }, USEC_PER_SEC, false);
        EXPECT_EQ(world.result, HANDLER_FAILED);
        EXPECT(now_boottime_usec() - begun < 60 * USEC_PER_SEC);
        server_stop(&world.server);
        perform_handler(&world, &(Handler){ .grpc = &grpc }, USEC_PER_SEC, false);
        EXPECT_STREQ(world.message, "error: health rpc probe failed: Connection refused");
        world.server = server_start(serve_grpc);
        world_done(&world);
}

TEST(a_grpc_probe_of_a_server_without_grpc_fails)
{
        GrpcAction grpc = { 0 };
        World world;

        world_init(&world, serve_http);
        grpc.port = (OptionalInt){ true, world.server.port };
        perform_handler(&world, &(Handler){ .grpc = &grpc }, USEC_PER_SEC, false);
        EXPECT_EQ(world.result, HANDLER_FAILED);
        world_done(&world);
}

TEST(a_sleep_handler_succeeds_after_its_time)
{
        SleepAction none = { .seconds = { true, 0 } }, much = { .seconds = { true, 3600 } };
        World world;

        world_init(&world, serve_http);
        perform_handler(&world, &(Handler){ .sleep = &none }, 0, /* is_hook= */ true);
        EXPECT_EQ(world.result, HANDLER_SUCCEEDED);
        perform_handler(&world, &(Handler){ .sleep = &much }, 50 * USEC_PER_MSEC,
                        /* is_hook= */ true);
        EXPECT_EQ(world.result, HANDLER_SUCCEEDED);
        world_done(&world);
}

TEST(a_slow_name_lookup_does_not_block_the_loop)
{
        TcpSocketAction tcp = { .port = { .number = { true, 1 } },
                                .host = (char[]){ "slow.test" } };
        World world;

        REQUIRE(sem_init(&lookup.has_begun, 0, 0) == 0 && sem_init(&lookup.may_end, 0, 0) == 0 &&
                sem_init(&lookup.has_ended, 0, 0) == 0);
        world_init(&world, serve_http);
        start_handler(&world, &(Handler){ .tcp_socket = &tcp }, 20 * USEC_PER_SEC, false);
        while (sem_trywait(&lookup.has_begun) < 0)
                REQUIRE(sd_event_run(world.event, 10 * USEC_PER_MSEC) >= 0);
        world.action = handler_run_free(world.action);
        REQUIRE(sem_post(&lookup.may_end) == 0);
        REQUIRE(sem_wait(&lookup.has_ended) == 0);
        EXPECT(lookup.was_let_go);
        world_done(&world);
}

TEST(a_run_can_be_cancelled_at_any_time)
{
        World world;

        world_init(&world, serve_http);
        for (unsigned i = 0; i < 40; i++) {
                HttpGetAction http = { .path = (char[]){ "/here" },
                                       .port = { .number = { true, world.server.port } } };
                const Handler handler = { .http_get = &http };
                uint64_t until = now_boottime_usec() + (uint64_t) i * 100;

                start_handler(&world, &handler, USEC_PER_SEC, false);
                while (!world.is_done && now_boottime_usec() < until)
                        REQUIRE(sd_event_run(world.event, 100) >= 0);
                world.action = handler_run_free(world.action);
        }
        perform_http_get(&world, "/ok", 20 * USEC_PER_SEC, false);
        EXPECT_EQ(world.result, HANDLER_SUCCEEDED);
        world_done(&world);
}
