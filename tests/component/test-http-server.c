/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/component/fake-agent.h"

TEST(every_route_replies)
{
        start_http_server();
        expect_answer("/healthz", "HTTP/1.1 200", "ok");
        expect_answer("/readyz", "HTTP/1.1 503", "the first scan is under way\n");
        fake_agent.is_ready = true;
        expect_answer("/readyz", "HTTP/1.1 200", "ok");
        expect_answer("/metrics", "HTTP/1.1 200", "kubelet_running_pods 3\n");
        expect_answer(
                "/pods", "HTTP/1.1 200",
                "{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{},\"items\":[]}\n");
        expect_answer("/manifests", "HTTP/1.1 200",
                      "{\"directory\":\"/etc/kubernetes/"
                      "manifests\",\"error\":null,\"warning\":null,\"items\":["
                      "{\"file\":\"web.yaml\",\"pods\":[\"default/"
                      "web-n1\"],\"daemonsets\":[],\"error\":null,"
                      "\"warnings\":[\"web.yaml:9:5: spec.foo: unknown field\"]},"
                      "{\"file\":\"bad.yaml\",\"pods\":[],\"daemonsets\":[],"
                      "\"error\":\"bad.yaml:1:1: is \\\"no\\\" mapping\","
                      "\"errorSince\":\"2026-01-02T03:04:05Z\",\"warnings\":[]}],"
                      "\"archives\":[{\"archive\":\"x.tar\",\"message\":\"is not an archive\"}]}");
        expect_idle();
        stop_http_server();
}

static void expect_put(const char *path, const char *head, const char *body) {
        HttpTestClient client = client_open();
        char request[256];

        (void) snprintf(request, sizeof(request),
                        "PUT %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", path);
        client_say(&client, request);
        EXPECT(client_wait(&client, NULL));
        EXPECT(strncmp(client.data, head, strlen(head)) == 0);
        EXPECT_STREQ(client_body(&client), body);
        client_close(&client);
}

TEST(dump_and_log_level_are_served_to_root)
{
        int level = log_level();

        log_set_level(log_level_parse("info"));
        start_http_server();
        expect_answer("/debug/dump", "HTTP/1.1 200", "Agent:\n  version: 1\n");
        expect_answer("/debug/loglevel", "HTTP/1.1 200", "info\n");
        expect_put("/debug/loglevel?level=loud", "HTTP/1.1 400",
                   "the log level must be error, warning, info or debug, not 'loud'\n");
        expect_put("/debug/loglevel", "HTTP/1.1 400",
                   "the log level must be error, warning, info or debug, not ''\n");
        expect_put("/debug/loglevel?level=debug", "HTTP/1.1 200", "debug\n");
        expect_answer("/debug/loglevel", "HTTP/1.1 200", "debug\n");
        log_set_level(level);
        expect_put("/debug/dump", "HTTP/1.1 405", "/debug/dump takes the method GET only\n");
        expect_idle();
        stop_http_server();
}

TEST(unknown_path_is_404_and_wrong_method_is_405)
{
        static const char *const paths[] = {
                "/",        "/pod",     "/pods/",           "//pods",
                "/pods%00", "/../pods", "/containerLogs/a", "/healthz;x"
        };
        HttpTestClient client;

        start_http_server();
        for (size_t i = 0; i < N_ELEMENTS(paths); i++) {
                client = client_open();
                client_ask(&client, paths[i]);
                EXPECT(client_wait(&client, "HTTP/1.1 404"));
                client_close(&client);
        }
        client = client_open();
        client_say(&client, "DELETE /pods HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
        EXPECT(client_wait(&client, NULL));
        EXPECT(strncmp(client.data, "HTTP/1.1 405", 12) == 0);
        EXPECT(strstr(client.data, "Allow: GET"));
        EXPECT_STREQ(client_body(&client), "/pods takes the method GET only\n");
        client_close(&client);
        expect_idle();
        stop_http_server();
}

/* Sends a request and returns the first bytes of the response's head. */
static void expect_delete(const char *path, const char *head, const char *deleted) {
        cleanup_free char *request = NULL;
        HttpTestClient client = client_open();

        fake_agent.deleted[0] = '\0';
        REQUIRE(asprintf(&request, "DELETE %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
                         path) > 0);
        client_say(&client, request);
        EXPECT(client_wait(&client, NULL));
        EXPECT(strncmp(client.data, head, strlen(head)) == 0);
        EXPECT_STREQ(fake_agent.deleted, deleted);
        client_close(&client);
}

static void expect_order(const char *path, const char *head, const char *ordered) {
        cleanup_free char *request = NULL;
        HttpTestClient client = client_open();

        fake_agent.ordered[0] = '\0';
        REQUIRE(asprintf(&request, "POST %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
                         path) > 0);
        client_say(&client, request);
        EXPECT(client_wait(&client, NULL));
        EXPECT(strncmp(client.data, head, strlen(head)) == 0);
        EXPECT_STREQ(fake_agent.ordered, ordered);
        client_close(&client);
}

TEST(daemonsets_are_listed_and_actions_run)
{
        start_http_server();
        expect_answer("/daemonsets", "HTTP/1.1 200",
                      "{\"kind\":\"DaemonSetList\",\"apiVersion\":\"apps/v1\",\"metadata\":{},"
                      "\"items\":[]}\n");
        fake_agent.n_sets = 2;
        expect_answer("/daemonsets", "HTTP/1.1 200",
                      "{\"kind\":\"DaemonSetList\",\"apiVersion\":\"apps/v1\",\"metadata\":{},"
                      "\"items\":[{\"set\":0,\"state\":0},{\"set\":1,\"state\":0}]}\n");
        expect_answer("/node", "HTTP/1.1 200", "{\"kind\":\"Node\"}\n");
        expect_order("/daemonsets/default/logs/undo?revision=3", "HTTP/1.1 200",
                     "undo default/logs 3");
        expect_order("/daemonsets/default/logs/undo?revision=9", "HTTP/1.1 200",
                     "undo default/logs 9");
        expect_order("/daemonsets/default/logs/restart", "HTTP/1.1 200", "restart default/logs 0");
        expect_order("/daemonsets/a/b/orphan", "HTTP/1.1 200", "orphan a/b 0");
        expect_order("/daemonsets/a/b/delete", "HTTP/1.1 200", "delete a/b 0");
        expect_order("/daemonsets/default/gone/undo", "HTTP/1.1 404", "");
        expect_order("/daemonsets/default/logs/undo?revision=x", "HTTP/1.1 400", "");
        expect_order("/daemonsets/default/logs/explode", "HTTP/1.1 404", "");
        expect_order("/daemonsets/default/logs", "HTTP/1.1 404", "");
        expect_order("/daemonsets/default/logs/undo/more", "HTTP/1.1 404", "");
        expect_order("/daemonsets", "HTTP/1.1 405", "");
        expect_idle();
        stop_http_server();
}

TEST(delete_request_has_the_semantics_of_the_api_server)
{
        start_http_server();
        expect_delete("/api/v1/namespaces/default/pods/web-n1", "HTTP/1.1 200",
                      "default/web-n1/-1");
        expect_delete("/api/v1/namespaces/default/pods/web-n1?gracePeriodSeconds=7", "HTTP/1.1 200",
                      "default/web-n1/7");
        expect_delete("/api/v1/namespaces/default/pods/gone-n1", "HTTP/1.1 404", "");
        expect_delete("/api/v1/namespaces/default/pods/web-n1?gracePeriodSeconds=x", "HTTP/1.1 400",
                      "");
        expect_delete("/api/v1/namespaces/default/pods", "HTTP/1.1 404", "");
        expect_delete("/api/v1/namespaces/default/pods/", "HTTP/1.1 404", "");
        expect_delete("/api/v1/namespaces/default/services/web", "HTTP/1.1 404", "");
        expect_delete("/api/v1/namespaces/default/pods/web-n1/status", "HTTP/1.1 404", "");
        expect_idle();
        stop_http_server();
}

#define UPGRADE                                           \
        "Connection: Upgrade\r\nUpgrade: websocket\r\n"   \
        "Sec-WebSocket-Version: 13\r\n"                   \
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n" \
        "Sec-WebSocket-Protocol: v5.channel.k8s.io\r\n"

static HttpTestClient ask_exec(const char *path, const char *headers) {
        cleanup_free char *request = NULL;
        HttpTestClient client = client_open();

        REQUIRE(asprintf(&request, "GET %s HTTP/1.1\r\nHost: x\r\n%s\r\n", path, headers) > 0);
        client_say(&client, request);
        return client;
}

TEST(upgraded_connection_is_passed_on_and_stays_open)
{
        HttpTestClient client;

        start_http_server();
        client = ask_exec("/exec/default/web-n1/app?command=echo&command=a%20b&input=1&output=1",
                          UPGRADE);
        EXPECT(client_wait(&client, "\r\n\r\n"));
        EXPECT(strncmp(client.data, "HTTP/1.1 101", 12) == 0);
        EXPECT(strstr(client.data, "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"));
        EXPECT(strstr(client.data, "Sec-WebSocket-Protocol: v5.channel.k8s.io\r\n"));
        for (unsigned i = 0; i < 1000 && fake_agent.executed_fd == 0; i++)
                run_loop_once();
        EXPECT_STREQ(fake_agent.executed, "default/web-n1/app echo a b 1100");
        REQUIRE(fake_agent.executed_fd > 0);
        expect_idle();
        REQUIRE(write_all(fake_agent.executed_fd, "raw", 3) >= 0);
        EXPECT(client_wait(&client, "raw"));
        close_fd(fake_agent.executed_fd);
        client_close(&client);
        stop_http_server();
}

TEST(sessions_do_not_count_as_connections)
{
        HttpTestClient sessions[50];

        start_http_server();
        for (unsigned n = 0; n < N_ELEMENTS(sessions); n++) {
                fake_agent.executed_fd = 0;
                sessions[n] = ask_exec("/exec/default/web-n1/app?command=echo&output=1", UPGRADE);
                EXPECT(client_wait(&sessions[n], "HTTP/1.1 101"));
                for (unsigned i = 0; i < 1000 && fake_agent.executed_fd == 0; i++)
                        run_loop_once();
                REQUIRE(fake_agent.executed_fd > 0);
                close_fd(fake_agent.executed_fd);
        }
        expect_answer("/healthz", "HTTP/1.1 200", "ok");
        for (unsigned n = 0; n < N_ELEMENTS(sessions); n++)
                client_close(&sessions[n]);
        expect_idle();
        stop_http_server();
}

TEST(client_that_disconnects_before_the_upgrade_leaks_nothing)
{
        start_http_server();
        for (unsigned i = 0; i < 20; i++) {
                HttpTestClient client =
                        ask_exec("/exec/default/web-n1/app?command=echo&output=1", UPGRADE);

                /* The client has sent its request and does not read the response. */
                REQUIRE(shutdown(client.fd, SHUT_RD) == 0);
                for (unsigned n = 0; n < 10; n++)
                        run_loop_once();
                client_close(&client);
                EXPECT_EQ(fake_agent.executed_fd, 0);
        }
        expect_idle();
        stop_http_server();
}

TEST(invalid_exec_is_refused_before_the_upgrade)
{
        static const struct {
                const char *path, *headers, *head;
        } cases[] = {
                { "/exec/default/gone-n1/app?command=x&output=1", UPGRADE, "HTTP/1.1 404" },
                { "/exec/default/web-n1?command=x&output=1", UPGRADE, "HTTP/1.1 404" },
                { "/exec/default/web-n1/app?output=1", UPGRADE, "HTTP/1.1 400" },
                { "/exec/default/web-n1/app?command=x", UPGRADE, "HTTP/1.1 400" },
                { "/exec/default/web-n1/app?command=x&output=1", "", "HTTP/1.1 426" },
        };

        start_http_server();
        for (size_t i = 0; i < N_ELEMENTS(cases); i++) {
                HttpTestClient client = ask_exec(cases[i].path, cases[i].headers);

                EXPECT(client_wait(&client, cases[i].head));
                EXPECT_EQ(fake_agent.executed_fd, 0);
                client_close(&client);
        }
        expect_idle();
        stop_http_server();
}

TEST(request_body_is_not_read)
{
        HttpTestClient client;

        start_http_server();
        client = client_open();
        client_say(&client,
                   "POST /pods HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000000\r\n\r\nabc");
        EXPECT(client_wait(&client, "HTTP/1.1 405"));
        EXPECT(client_wait(&client, NULL));
        client_close(&client);
        expect_idle();
        stop_http_server();
}

TEST(endless_headers_are_refused)
{
        HttpTestClient client;
        char line[1024];

        start_http_server();
        client = client_open();
        client_say(&client, "GET /pods HTTP/1.1\r\nHost: x\r\n");
        memset(line, 'a', sizeof(line));
        memcpy(line, "x: ", 3);
        memcpy(line + sizeof(line) - 3, "\r\n", 3);
        for (unsigned i = 0; i < 64; i++) {
                if (send(client.fd, line, strlen(line), MSG_NOSIGNAL) < 0)
                        break;
                run_loop_once();
        }
        EXPECT(client_wait(&client, "HTTP/1.1 431"));
        client_close(&client);
        expect_idle();
        stop_http_server();
}

TEST(pods_are_listed_one_by_one)
{
        start_http_server();
        agent_add("default/a/1", "{\"a\":1}");
        agent_add("default/b/2", "{\"b\":2}");
        expect_answer("/pods", "HTTP/1.1 200",
                      "{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"metadata\":{},"
                      "\"items\":[{\"a\":1},{\"b\":2}]}\n");
        stop_http_server();
}

TEST(daemonset_watch_sends_changes)
{
        HttpTestClient client;

        start_http_server();
        fake_agent.n_sets = 2;
        client = client_open();
        client_ask(&client, "/daemonsets?watch=1&bookmark=1");
        EXPECT(client_wait(&client, "{\"type\":\"ADDED\",\"object\":{\"set\":1,\"state\":0}}\n"
                                    "{\"type\":\"BOOKMARK\"}\n"));
        fake_agent.state_of_sets = 1;
        http_server_notify_objects(server, HTTP_DAEMONSETS);
        fake_agent.state_of_sets = 2; /* the server queries the agent in a later turn of the loop */
        http_server_notify_objects(server, HTTP_DAEMONSETS);
        EXPECT(client_wait(&client, "{\"type\":\"MODIFIED\",\"object\":{\"set\":1,\"state\":2}}"));
        EXPECT(!strstr(client_body(&client), "\"state\":1"));
        fake_agent.n_sets = 1;
        http_server_notify_objects(server, HTTP_DAEMONSETS);
        EXPECT(client_wait(&client, "{\"type\":\"DELETED\",\"object\":{\"set\":1,\"state\":2}}"));
        EXPECT(!strstr(client_body(&client), "{\"type\":\"DELETED\",\"object\":{\"set\":0"));
        client_close(&client);
        expect_idle();
        stop_http_server();
}

TEST(events_are_sent_in_order_and_a_watch_continues)
{
        HttpTestClient client;

        start_http_server();
        expect_answer("/events", "HTTP/1.1 200",
                      "{\"kind\":\"EventList\",\"apiVersion\":\"v1\",\"metadata\":{},"
                      "\"items\":[]}\n");
        fake_agent.n_events = 2;
        expect_answer("/events", "HTTP/1.1 200",
                      "{\"kind\":\"EventList\",\"apiVersion\":\"v1\",\"metadata\":{},"
                      "\"items\":[{\"n\":1},{\"n\":2}]}\n");
        client = client_open();
        client_ask(&client, "/events?watch=1");
        EXPECT(client_wait(&client, "{\"type\":\"ADDED\",\"object\":{\"n\":2}}"));
        fake_agent.n_events = 3;
        http_server_notify_event(server);
        EXPECT(client_wait(&client, "{\"type\":\"ADDED\",\"object\":{\"n\":3}}"));
        client_close(&client);
        expect_idle();
        stop_http_server();
}

/* A thousand pods of four thousand bytes. */
static void add_many_pods(void) {
        cleanup_free char *json = malloc(4001);
        char key[32];

        REQUIRE(json);
        memset(json, ' ', 4000);
        memcpy(json, "{\"pod\":1", 8);
        json[3999] = '}';
        json[4000] = '\0';
        for (unsigned i = 0; i < 1000; i++) {
                (void) snprintf(key, sizeof(key), "default/%04u", i);
                agent_add(key, json);
        }
}

TEST(slow_client_gets_a_long_list)
{
        HttpTestClient client;

        start_http_server();
        add_many_pods();
        client = client_open();
        client_ask(&client, "/pods");
        for (unsigned i = 0; i < 20; i++)
                run_loop_once();
        EXPECT(client_wait(&client, NULL));
        EXPECT(client.length > 1000 * (size_t) 4000);
        EXPECT(strstr(client_body(&client), "}]}\n"));
        client_close(&client);
        expect_idle();
        stop_http_server();
}

TEST(client_that_does_not_read_is_disconnected)
{
        struct pollfd hangup = { .events = POLLRDHUP };
        HttpTestClient client;

        request_timeout_usec = USEC_PER_SEC / 2;
        start_http_server();
        request_timeout_usec = 0;
        add_many_pods();
        client = client_open();
        client_ask(&client, "/pods");
        hangup.fd = client.fd;
        for (uint64_t end = now_boottime_usec() + DEADLINE_SEC * USEC_PER_SEC;
             now_boottime_usec() < end && poll(&hangup, 1, 0) == 0;)
                run_loop_once();
        EXPECT(hangup.revents & POLLRDHUP);
        EXPECT(client_wait(&client, NULL));
        EXPECT(!strstr(client.data, "}]}\n"));
        client_close(&client);
        expect_idle();
        stop_http_server();
}

TEST(watch_sends_the_pods_and_then_changes)
{
        HttpTestClient client;

        start_http_server();
        agent_add("default/a/1", "{\"a\":1}");
        EXPECT(!http_server_has_pod_watchers(server));
        client = client_open();
        client_ask(&client, "/pods?watch=1");
        EXPECT(client_wait(&client, "{\"type\":\"ADDED\",\"object\":{\"a\":1}}\n"));
        EXPECT(http_server_has_pod_watchers(server));
        expect_idle();

        http_server_notify_pod(server, HTTP_WATCH_MODIFIED, "default/a/1", "{\"a\":2}");
        EXPECT(client_wait(&client, "{\"type\":\"MODIFIED\",\"object\":{\"a\":2}}\n"));
        http_server_notify_pod(server, HTTP_WATCH_ADDED, "default/b/1", "{\"b\":1}");
        http_server_notify_pod(server, HTTP_WATCH_DELETED, "default/a/1", "{\"a\":3}");
        EXPECT(client_wait(&client, "{\"type\":\"DELETED\",\"object\":{\"a\":3}}\n"));
        EXPECT(strstr(client.data, "{\"type\":\"ADDED\",\"object\":{\"b\":1}}\n"));
        expect_idle();
        client_close(&client);
        while (http_server_has_pod_watchers(server))
                run_loop_once();
        expect_idle();
        stop_http_server();
}

TEST(watch_that_is_not_read_is_closed_and_other_watches_continue)
{
        HttpTestClient slow, good;
        cleanup_free char *json = malloc(10001);
        unsigned n_events = 0;

        start_http_server();
        slow = client_open();
        good = client_open();
        client_ask(&slow, "/pods?watch=true");
        client_ask(&good, "/pods?watch");
        EXPECT(client_wait(&good, "200 OK"));
        EXPECT(client_wait(&slow, "200 OK"));
        memset(json, '1', 10000);
        json[10000] = '\0';
        for (; n_events < 400; n_events++) {
                http_server_notify_pod(server, HTTP_WATCH_MODIFIED, "default/a/1", json);
                for (unsigned i = 0; i < 8; i++)
                        REQUIRE(sd_event_run(event, 0) >= 0);
                client_read(&good);
        }
        http_server_notify_pod(server, HTTP_WATCH_MODIFIED, "default/a/1", "{\"last\":1}");
        EXPECT(client_wait(&good, "{\"last\":1}"));
        EXPECT(good.length > (size_t) n_events * 10000);
        EXPECT(client_wait(&slow, NULL));
        EXPECT(!strstr(slow.data, "{\"last\":1}"));
        EXPECT(slow.length < (size_t) n_events * 10000);
        client_close(&slow);
        client_close(&good);
        stop_http_server();
}

TEST(incomplete_request_times_out_and_blocks_no_other_request)
{
        HttpTestClient half, whole;

        request_timeout_usec = USEC_PER_SEC;
        start_http_server();
        request_timeout_usec = 0;
        half = client_open();
        client_say(&half, "GET /pods HTT");
        for (unsigned i = 0; i < 5; i++)
                run_loop_once();
        whole = client_open();
        client_ask(&whole, "/healthz");
        EXPECT(client_wait(&whole, "200 OK"));
        EXPECT(client_wait(&half, NULL));
        client_close(&half);
        client_close(&whole);
        expect_idle();
        stop_http_server();
}

TEST(request_that_arrived_in_time_is_answered_after_the_loop_was_busy)
{
        HttpTestClient client;

        request_timeout_usec = 3 * USEC_PER_SEC;
        start_http_server();
        request_timeout_usec = 0;
        client = client_open();
        while (sd_event_run(event, 0) > 0) /* the server accepts the connection */
                ;
        client_ask(&client, "/healthz");
        (void) usleep(4 * USEC_PER_SEC);
        EXPECT(client_wait(&client, "200 OK"));
        client_close(&client);
        expect_idle();
        stop_http_server();
}

TEST(fifty_clients_are_all_served_in_turn)
{
        HttpTestClient clients[50];
        unsigned watching = 0, refused = 0;

        start_http_server();
        for (unsigned i = 0; i < 50; i++) {
                clients[i] = client_open();
                client_ask(&clients[i], i < 34 ? "/pods?watch=1" : "/healthz");
        }
        for (unsigned i = 0; i < 50; i++) {
                EXPECT(client_wait(&clients[i], "\r\n\r\n"));
                if (strstr(clients[i].data, "HTTP/1.1 200"))
                        watching += i < 34;
                else
                        refused++;
        }
        EXPECT_EQ(watching, 30);
        EXPECT_EQ(refused, 4);
        EXPECT(client_wait(&clients[49], NULL));
        EXPECT_STREQ(client_body(&clients[49]), "ok");
        for (unsigned i = 0; i < 50; i++)
                client_close(&clients[i]);
        expect_idle();
        EXPECT(!http_server_has_pod_watchers(server));
        stop_http_server();
}

static void become_nobody(uid_t uid) {
        if (setgroups(0, NULL) < 0 || setresgid(65534, 65534, 65534) < 0 ||
            setresuid(uid, uid, uid) < 0)
                _exit(2);
}

/* Sends a request as a user that is neither root nor in root's group. Returns the status of the
 * response. */
static int ask_as(uid_t uid, const char *request) {
        static const int known[] = { 200, 403, 503 }; /* larger than an exit code */
        int status = -1;
        pid_t pid = fork();

        REQUIRE(pid >= 0);
        if (pid == 0) {
                char answer[512] = { 0 };
                HttpTestClient client;

                become_nobody(uid);
                client = client_open();
                (void) fcntl(client.fd, F_SETFL, 0);
                (void) send(client.fd, request, strlen(request), MSG_NOSIGNAL);
                (void) recv(client.fd, answer, sizeof(answer) - 1, 0);
                _exit((int) strtol(answer + strlen("HTTP/1.1 "), NULL, 10) % 251);
        }
        for (uint64_t end = now_boottime_usec() + DEADLINE_SEC * USEC_PER_SEC;
             now_boottime_usec() < end && waitpid(pid, &status, WNOHANG) == 0;)
                run_loop_once();
        EXPECT(WIFEXITED(status));
        for (unsigned i = 0; i < N_ELEMENTS(known); i++)
                if (WEXITSTATUS(status) == known[i] % 251)
                        return known[i];
        return -1;
}

/* Runs in a child process: opens connections as a user, sends half a request over each, reports
 * this with a byte, and keeps the connections open. */
static void hold_half_requests(uid_t uid, unsigned n, int ready_fd) {
        static const char half[] = "GET /pods HTT";

        become_nobody(uid);
        for (unsigned i = 0; i < n; i++) {
                HttpTestClient client = client_open();

                (void) send(client.fd, half, sizeof(half) - 1, MSG_NOSIGNAL);
        }
        (void) !write(ready_fd, "", 1);
        for (;;)
                (void) pause();
}

TEST(incomplete_requests_of_one_user_do_not_delay_other_users)
{
        int ready[2];
        HttpTestClient client;
        char byte;
        pid_t pid;

        if (geteuid() != 0)
                return;
        request_timeout_usec = 600 * USEC_PER_SEC;
        start_http_server();
        request_timeout_usec = 0;
        EXPECT_EQ(chmod(test_directory(), 0755), 0);
        EXPECT_EQ(chown(socket_path, 0, 65534), 0);
        REQUIRE(pipe2(ready, O_CLOEXEC | O_NONBLOCK) >= 0);
        pid = fork();
        REQUIRE(pid >= 0);
        if (pid == 0)
                hold_half_requests(65534, 60, ready[1]);
        for (uint64_t end = now_boottime_usec() + DEADLINE_SEC * USEC_PER_SEC;
             now_boottime_usec() < end && read(ready[0], &byte, 1) < 1;)
                run_loop_once();
        for (unsigned i = 0; i < 10; i++) {
                client = client_open();
                client_ask(&client, "/healthz");
                EXPECT(client_wait(&client, "200 OK"));
                client_close(&client);
        }
        EXPECT_EQ(ask_as(65533, "GET /healthz HTTP/1.0\r\n\r\n"), 200);
        EXPECT_EQ(ask_as(65534, "GET /healthz HTTP/1.0\r\n\r\n"), 503);
        (void) kill(pid, SIGKILL);
        EXPECT_EQ(waitpid(pid, NULL, 0), pid);
        close_fd(ready[0]);
        close_fd(ready[1]);
        stop_http_server();
}

static int count_step(sd_event_source *source, void *userdata) {
        ++*(unsigned *) userdata;
        return 0;
}

/* Pods take their steps at this priority (pod-manager.c, directory.c). */
TEST(requests_are_answered_after_pending_steps_of_pods)
{
        cleanup_with(sd_event_source_disable_unrefp) sd_event_source *steps = NULL;
        unsigned n_steps = 0;
        HttpTestClient client;

        start_http_server();
        client = client_open();
        client_ask(&client, "/healthz");
        REQUIRE(sd_event_add_defer(event, &steps, count_step, &n_steps) >= 0);
        REQUIRE(sd_event_source_set_priority(steps, SD_EVENT_PRIORITY_NORMAL + 10) >= 0);
        REQUIRE(sd_event_source_set_enabled(steps, SD_EVENT_ON) >= 0);
        for (unsigned i = 0; i < 100; i++)
                EXPECT(sd_event_run(event, 0) > 0);
        EXPECT_EQ(n_steps, 100U);
        steps = sd_event_source_disable_unref(steps);
        EXPECT(client_wait(&client, "200 OK"));
        client_close(&client);
        stop_http_server();
}

TEST(socket_is_for_root_and_its_group)
{
        struct stat st;

        start_http_server();
        EXPECT_EQ(stat(socket_path, &st), 0);
        EXPECT_EQ(st.st_mode & 07777, 0660);
        if (geteuid() == 0) {
                int level = log_level();

                EXPECT_EQ(chmod(test_directory(), 0755), 0);
                EXPECT_EQ(chmod(socket_path, 0666), 0);
                EXPECT_EQ(ask_as(65534, "GET /pods HTTP/1.0\r\n\r\n"), 403);
                EXPECT_EQ(chown(socket_path, 0, 65534), 0);
                EXPECT_EQ(ask_as(65534, "GET /pods HTTP/1.0\r\n\r\n"), 200);
                EXPECT_EQ(ask_as(65534, "GET /debug/dump HTTP/1.0\r\n\r\n"), 403);
                EXPECT_EQ(ask_as(65534, "GET /debug/loglevel HTTP/1.0\r\n\r\n"), 403);
                EXPECT_EQ(ask_as(65534, "PUT /debug/loglevel?level=debug HTTP/1.0\r\n\r\n"), 403);
                EXPECT_EQ(log_level(), level);
        }
        stop_http_server();
}

TEST(stale_socket_is_replaced_and_a_newer_one_is_kept)
{
        HttpServer *first, *second = NULL;
        HttpServerConfig config;
        struct stat st;

        start_http_server();
        first = server;
        config = (HttpServerConfig){ event, socket_path, &handlers, &fake_agent, 0 };
        REQUIRE(http_server_new(&config, &second, NULL) >= 0);
        server = second;
        http_server_free(first);
        expect_answer("/healthz", "HTTP/1.1 200", "ok");
        stop_http_server();
        EXPECT(stat(socket_path, &st) < 0);
}
