/* SPDX-License-Identifier: Apache-2.0 */
#include "tests/component/fake-agent.h"

TEST(logs_accept_the_query_parameters_of_the_kubelet)
{
        static const char log[] = "/containerLogs/default/web-n1/app";
        char path[128];

        start_http_server();
        append_log("0.log", "2026-01-02T03:04:01Z stdout F before\n");
        append_log("1.log.20260102-030405", "2026-01-02T03:04:05Z stdout F one\n");
        append_log("1.log", "2026-01-02T03:04:06Z stderr F two\n");
        expect_answer(log, "HTTP/1.1 200", "one\ntwo\n");
        (void) snprintf(path, sizeof(path), "%s?previous=true&timestamps=true", log);
        expect_answer(path, "HTTP/1.1 200", "2026-01-02T03:04:01Z before\n");
        (void) snprintf(path, sizeof(path), "%s?tailLines=1", log);
        expect_answer(path, "HTTP/1.1 200", "two\n");
        (void) snprintf(path, sizeof(path), "%s?sinceTime=2026-01-02T03:04:06Z", log);
        expect_answer(path, "HTTP/1.1 200", "two\n");
        (void) snprintf(path, sizeof(path), "%s?limitBytes=5&follow=true", log);
        expect_answer(path, "HTTP/1.1 200", "one\nt");
        expect_idle();
        stop_http_server();
}

TEST(unavailable_log_is_an_error_with_its_reason)
{
        start_http_server();
        expect_answer("/containerLogs/default/web/app", "HTTP/1.1 404", "pods \"web\" not found\n");
        expect_answer("/containerLogs/default/web-n1/late", "HTTP/1.1 400",
                      "container \"late\" is waiting to start\n");
        expect_answer("/containerLogs/default/web-n1/app?tailLines=-1", "HTTP/1.1 400",
                      "tailLines must be a whole number of at least 0\n");
        expect_answer("/containerLogs/default/web-n1/app?sinceSeconds=1x", "HTTP/1.1 400",
                      "sinceSeconds must be a whole number of at least 1\n");
        expect_answer("/containerLogs/default/web-n1/app?sinceTime=now", "HTTP/1.1 400",
                      "sinceTime must be a time like 2026-01-02T03:04:05Z\n");
        expect_answer("/containerLogs/default/web-n1/app?sinceSeconds=1&sinceTime=x",
                      "HTTP/1.1 400", "at most one of sinceTime and sinceSeconds may be given\n");
        stop_http_server();
}

TEST(follow_sleeps_until_a_write_and_ends_with_the_container)
{
        HttpTestClient client;

        start_http_server();
        fake_agent.is_live = true;
        append_log("1.log", "2026-01-02T03:04:05Z stdout F one\n");
        client = client_open();
        client_ask(&client, "/containerLogs/default/web-n1/app?follow=true");
        EXPECT(client_wait(&client, "one\n"));
        expect_idle();
        append_log("1.log", "2026-01-02T03:04:06Z stdout F two\n");
        EXPECT(client_wait(&client, "two\n"));
        expect_idle();
        append_log("1.log", "2026-01-02T03:04:06Z stdout F three\n");
        http_server_notify_log_end(server, log_directory, 0);
        expect_idle();
        http_server_notify_log_end(server, log_directory, 1);
        EXPECT(client_wait(&client, NULL));
        EXPECT_STREQ(client_body(&client), "one\ntwo\nthree\n");
        client_close(&client);
        expect_idle();
        stop_http_server();
}

enum {
        FOLLOWED_LINES = 5000
};

/* Writes and rotates like a shim, in a separate process. */
static pid_t start_writer(void) {
        pid_t pid = fork();

        REQUIRE(pid >= 0);
        if (pid > 0)
                return pid;
        for (unsigned i = 0; i < FOLLOWED_LINES; i++) {
                char line[64], from[200], to[256];

                (void) snprintf(line, sizeof(line), "2026-01-02T03:04:05Z stdout F %u\n", i);
                (void) snprintf(from, sizeof(from), "%s/1.log", log_directory);
                (void) snprintf(to, sizeof(to), "%s.20260102-%06u", from, i);
                if (i % 100 == 99 && rename(from, to) < 0)
                        _exit(1);
                append_log("1.log", line);
        }
        _exit(0);
}

TEST(follow_neither_loses_nor_repeats_a_line)
{
        HttpTestClient client;
        const char *p;
        unsigned expected = 0;
        bool ended = false;
        pid_t pid;

        start_http_server();
        fake_agent.is_live = true;
        append_log("1.log", "");
        client = client_open();
        client_ask(&client, "/containerLogs/default/web-n1/app?follow=true");
        pid = start_writer();
        for (uint64_t end = now_boottime_usec() + DEADLINE_SEC * USEC_PER_SEC;
             now_boottime_usec() < end && !client.is_closed;) {
                run_loop_once();
                client_read(&client);
                if (!ended && waitpid(pid, NULL, WNOHANG) == pid) {
                        http_server_notify_log_end(server, log_directory, 1);
                        ended = true;
                }
        }
        EXPECT(client.is_closed);
        for (p = client_body(&client); *p; p = strchr(p, '\n') + 1)
                EXPECT_EQ(strtoul(p, NULL, 10), expected++);
        EXPECT_EQ(expected, FOLLOWED_LINES);
        client_close(&client);
        expect_idle();
        stop_http_server();
}

TEST(client_that_disconnects_while_following_is_forgotten)
{
        HttpTestClient client;

        start_http_server();
        fake_agent.is_live = true;
        append_log("1.log", "2026-01-02T03:04:05Z stdout F one\n");
        for (unsigned i = 0; i < 100; i++) {
                client = client_open();
                client_ask(&client, "/containerLogs/default/web-n1/app?follow=1");
                EXPECT(client_wait(&client, "one\n"));
                client_close(&client);
        }
        expect_idle();
        stop_http_server();
}
