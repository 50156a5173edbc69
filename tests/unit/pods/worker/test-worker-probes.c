/* SPDX-License-Identifier: Apache-2.0 */
/* Probes and hooks: when they run, and what their results mean. */

#include "tests/unit/pods/worker/fake-node.h"

#include "common/cleanup.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#define PROBE(kind, more) kind ": {exec: {command: [" #kind "]}, " more "}"
#define READY             "Running Ready | app running ready"
#define UNREADY           "Running | app running"

static FakeNode *new_probed_node(void) {
        FakeNode *node = fake_node_new();

        fake_shims.keeps_execs = true;
        return node;
}

TEST(a_container_is_ready_while_its_readiness_probe_succeeds)
{
        cleanup_with(fake_node_freep) FakeNode *node = new_probed_node();
        static const NodeStep steps[] = {
                { 0, "apply", "start\nsetup\nrun app/0\n", UNREADY,
                  POD(APP_WITH("readinessProbe: {exec: {command: [look]}, initialDelaySeconds: 3, "
                               "periodSeconds: 5, failureThreshold: 2}")) },
                { 2, "", "", UNREADY },
                { 1, "", "exec app: look\n", UNREADY },
                { 0, "exec app 0", "", READY },
                { 5, "exec app 1", "exec app: look\n", READY },
                { 5, "exec app 1", "exec app: look\n", UNREADY },
                { 5, "exec app 0", "exec app: look\n", READY },
        };

        PLAY(node, steps);
}

TEST(a_liveness_probe_that_fails_restarts_the_container)
{
        cleanup_with(fake_node_freep) FakeNode *node = new_probed_node();
        static const NodeStep steps[] = {
                { 0, "apply", "start\nsetup\nrun app/0\nexec app: live\n", READY,
                  POD(APP_WITH("livenessProbe: {exec: {command: [live]}, periodSeconds: 10, "
                               "failureThreshold: 2, terminationGracePeriodSeconds: 4}")) },
                { 1, "exec app 0", NULL, READY },
                { 10, "exec app 1", "exec app: live\n", READY },
                { 10, "exec app 1",
                  "exec app: live\nstop app/0 signal 15 kill 4\nrun app/1\nexec app: live\n",
                  "Running Ready | app running ready (1) after 143" },
                { 1, "exec app 0", "", NULL },
        };

        PLAY(node, steps);
        EXPECT_STREQ(fake_node_pod_events(node),
                     "Pulled Created Started Unhealthy Unhealthy Killing Pulled Created Started");
}

TEST(other_probes_wait_for_the_startup_probe)
{
        cleanup_with(fake_node_freep) FakeNode *node = new_probed_node();
        static const NodeStep steps[] = {
                { 0, "apply", "start\nsetup\nrun app/0\nexec app: up\n",
                  "Running | app running starting",
                  POD(APP_WITH("startupProbe: {exec: {command: [up]}, periodSeconds: 2}, "
                               "livenessProbe: {exec: {command: [live]}}, "
                               "readinessProbe: {exec: {command: [ready]}}")) },
                { 1, "exec app 1", "", "Running | app running starting" },
                { 2, "exec app 0", "exec app: up\nexec app: live\nexec app: ready\n", UNREADY },
                { 1, "exec app 0", "", UNREADY },
                { 0, "exec app 0", "", READY },
        };

        PLAY(node, steps);
}

TEST(a_startup_probe_that_fails_kills_the_container)
{
        cleanup_with(fake_node_freep) FakeNode *node = new_probed_node();
        static const NodeStep steps[] = {
                { 0, "apply", NULL, NULL,
                  POD("  restartPolicy: Never\n" APP_WITH(
                          "startupProbe: {exec: {command: [up]}, failureThreshold: 1}")) },
                { 1, "exec app timeout",
                  "stop app/0 signal 15 kill 30\nteardown\n"
                  "cleanup of a completed pod\n",
                  "Failed | app ended Error 143" },
        };

        PLAY(node, steps);
}

TEST(a_probe_that_takes_longer_than_its_period_follows_at_once)
{
        cleanup_with(fake_node_freep) FakeNode *node = new_probed_node();
        static const NodeStep steps[] = {
                { 0, "apply", NULL, NULL,
                  POD(APP_WITH("readinessProbe: {exec: {command: [look]}, periodSeconds: 1}")) },
                { 3, "", "", NULL },
                { 0, "exec app 0", "exec app: look\n", READY },
        };

        PLAY(node, steps);
}

/* The readiness probe continues until the container ends, the liveness probe does not. */
TEST(probes_stop_with_their_container)
{
        cleanup_with(fake_node_freep) FakeNode *node = new_probed_node();
        static const NodeStep steps[] = {
                { 0, "apply", "start\nsetup\nrun app/0\nexec app: live\nexec app: look\n", NULL,
                  POD("  terminationGracePeriodSeconds: 3\n" APP_WITH(
                          "readinessProbe: {exec: {command: [look]}, periodSeconds: 1}, "
                          "livenessProbe: {exec: {command: [live]}, periodSeconds: 2}")) },
                { 0, "exec app 0", "", UNREADY },
                { 0, "exec app 0", "", READY },
                { 0, "stop web", "stop app/0 signal 15 kill 3\n", NULL },
                { 1, "exec app 1", "exec app: look\n", NULL },
                { 9, "", "exec app: look\nteardown\ncleanup of everything\n", "gone" },
        };

        fake_container("app")->ignores_signal = true;
        PLAY(node, steps);
        fake_container("app")->ignores_signal = false;
}

TEST(a_restarted_agent_keeps_the_results_of_probes)
{
        cleanup_with(fake_node_freep) FakeNode *node = new_probed_node();
        static const NodeStep steps[] = {
                { 0, "apply", NULL, NULL,
                  POD(APP_WITH("readinessProbe: {exec: {command: [look]}, periodSeconds: 10}")) },
                { 1, "exec app 0", NULL, READY },
                { 1, "agent restarts", "connect\n", READY },
                { 11, "exec app 0", NULL, READY },
        };

        PLAY(node, steps);
}

/* ---- other handlers ---- */

typedef struct HandlerRow {
        const char *handler;
        FakeHttpAnswer answer;
        const char *requests, *status, *message; /* the last event's message; NULL: no event */
} HandlerRow;

static const HandlerRow handler_rows[] = {
        { "httpGet: {port: 80, path: /x}",
          { .status = 200 },
          "GET http://192.0.2.1:80/x\n",
          READY,
          NULL },
        { "httpGet: {port: 80}",
          { .status = 503 },
          "GET http://192.0.2.1:80/\n",
          UNREADY,
          "Readiness probe failed: HTTP probe failed with statuscode: 503" },
        { "httpGet: {port: 80, scheme: HTTPS, host: example.org}",
          { .error = "Connection refused" },
          "GET https://example.org:80/\n",
          UNREADY,
          "Readiness probe failed: Get \"https://example.org:80/\": Connection refused" },
        { "httpGet: {port: 80}",
          { .status = 302, .location = "http://elsewhere/", .body = "go" },
          "GET http://192.0.2.1:80/\n",
          READY,
          "Readiness probe warning: Probe terminated redirects, Response body: go" },
        { "httpGet: {port: 80, httpHeaders: [{name: x-a, value: b}, {name: x-c, value: ''}]}",
          { .status = 200 },
          "GET http://192.0.2.1:80/\n  X-A: b\n  X-C;\n",
          READY,
          NULL },
        { "grpc: {port: 9, service: s}",
          { .status = 200, .grpc_status = "0", .body = "\0\0\0\0\2\x08\1", .body_length = 7 },
          "GET http://192.0.2.1:9/grpc.health.v1.Health/Check\n",
          READY,
          NULL },
        { "grpc: {port: 9}",
          { .status = 200, .grpc_status = "0", .body = "\0\0\0\0\2\x08\2", .body_length = 7 },
          "GET http://192.0.2.1:9/grpc.health.v1.Health/Check\n",
          UNREADY,
          "Readiness probe failed: service unhealthy (responded with \"NOT_SERVING\")" },
        { "grpc: {port: 9}",
          { .status = 200, .grpc_status = "12", .grpc_message = "no" },
          "GET http://192.0.2.1:9/grpc.health.v1.Health/Check\n",
          UNREADY,
          "Readiness probe failed: error: this server does not implement the grpc health protocol "
          "(grpc.health.v1.Health): no" },
        { "grpc: {port: 9}",
          { .status = 200, .grpc_status = "0", .body = "x" },
          "GET http://192.0.2.1:9/grpc.health.v1.Health/Check\n",
          UNREADY,
          "Readiness probe failed: error: health rpc probe failed: the response is malformed" },
        { "grpc: {port: 9}",
          { .status = 404 },
          "GET http://192.0.2.1:9/grpc.health.v1.Health/Check\n",
          UNREADY,
          "Readiness probe failed: error: health rpc probe failed: no gRPC status, but HTTP status "
          "404" },
        { "grpc: {port: 9}",
          { .hangs = true },
          "GET http://192.0.2.1:9/grpc.health.v1.Health/Check\n",
          UNREADY,
          "Readiness probe failed: timeout: health rpc did not complete within 1s" },
        { "httpGet: {port: 80}",
          { .hangs = true },
          "GET http://192.0.2.1:80/\n",
          UNREADY,
          "Readiness probe failed: Get \"http://192.0.2.1:80/\": context deadline exceeded "
          "(Client.Timeout exceeded while awaiting headers)" },
};

TEST(handler_results_give_the_state_of_a_container)
{
        for (size_t i = 0; i < N_ELEMENTS(handler_rows); i++) {
                const HandlerRow *row = &handler_rows[i];
                cleanup_with(fake_node_freep) FakeNode *node = fake_node_new();
                char yaml[1024];

                fake_http = row->answer;
                (void) snprintf(yaml, sizeof(yaml),
                                POD(APP_WITH("readinessProbe: {%s, periodSeconds: 100, "
                                             "initialDelaySeconds: 1, failureThreshold: 1}")),
                                row->handler);
                fake_node_apply(node, yaml);
                (void) fake_requests();
                (void) fake_node_pod_events(node);
                fake_node_pass(node, 5 * USEC_PER_SEC / 2);
                EXPECT_STREQ(fake_requests(), row->requests);
                EXPECT_STREQ(fake_node_status(node, "web"), row->status);
                if (row->message)
                        EXPECT_STREQ(node->last_message, row->message);
                EXPECT_EQ(fake_node_pod_events(node)[0] != '\0', row->message != NULL);
        }
}

static int listen_on_loopback(unsigned *ret_port) {
        struct sockaddr_in address = { .sin_family = AF_INET,
                                       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
        socklen_t length = sizeof(address);
        int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

        REQUIRE(fd >= 0 && bind(fd, (const struct sockaddr *) &address, length) >= 0);
        REQUIRE(listen(fd, 4) >= 0 && getsockname(fd, (struct sockaddr *) &address, &length) >= 0);
        *ret_port = ntohs(address.sin_port);
        return fd;
}

TEST(a_tcp_probe_succeeds_while_its_port_is_open)
{
        cleanup_with(fake_node_freep) FakeNode *node = fake_node_new();
        char yaml[1024];
        unsigned port;
        int fd = listen_on_loopback(&port);

        (void) snprintf(yaml, sizeof(yaml),
                        POD(APP_WITH("readinessProbe: {tcpSocket: {port: %u, host: 127.0.0.1}, "
                                     "periodSeconds: 5, failureThreshold: 1}")),
                        port);
        fake_node_apply(node, yaml);
        fake_node_pass(node, USEC_PER_SEC);
        EXPECT_STREQ(fake_node_status(node, "web"), READY);
        (void) close(fd);
        fake_node_pass(node, 5 * USEC_PER_SEC);
        EXPECT_STREQ(fake_node_status(node, "web"), UNREADY);
        EXPECT(strstr(node->last_message, "connect: connection refused"));
}

/* ---- hooks ---- */

TEST(a_container_is_running_when_its_post_start_hook_runs_and_others_wait_for_it)
{
        cleanup_with(fake_node_freep) FakeNode *node = new_probed_node();
        static const NodeStep steps[] = {
                { 0, "apply", "start\nsetup\nrun app/0\nexec app: begin\n",
                  "Pending | app waiting ContainerCreating, two waiting ContainerCreating",
                  POD("  containers:\n"
                      "  - {name: app, image: busybox, lifecycle: {postStart: {exec: {command: "
                      "[begin]}}}}\n"
                      "  - {name: two, image: busybox}\n") },
                { 5, "exec app 0", "run two/0\n",
                  "Running Ready | app running ready, two running ready" },
        };

        PLAY(node, steps);
}

TEST(a_failed_post_start_hook_kills_the_container)
{
        cleanup_with(fake_node_freep) FakeNode *node = new_probed_node();
        static const NodeStep steps[] = {
                { 0, "apply", NULL, NULL,
                  POD(APP_WITH("lifecycle: {postStart: {exec: {command: [begin]}}}")) },
                { 1, "exec app 1", "stop app/0 signal 15 kill 30\n",
                  "Running | app waiting PostStartHookError after 143" },
                { 10, "exec app 0", "run app/1\nexec app: begin\n",
                  "Running Ready | app running ready (1) after 143" },
        };

        PLAY(node, steps);
        EXPECT_STREQ(fake_node_pod_events(node), "Pulled Created Started FailedPostStartHook "
                                                 "Killing BackOff Pulled Created Started");
}

TEST(the_pre_stop_hook_runs_within_the_grace_period)
{
        cleanup_with(fake_node_freep) FakeNode *node = new_probed_node();
        static const NodeStep steps[] = {
                { 0, "apply", NULL, NULL,
                  POD(APP_WITH("lifecycle: {preStop: {exec: {command: [end]}}}")) },
                { 1, "stop web", "stop app/0 signal 15 in 30, kill 32\nexec app: end\n", NULL },
                { 10, "exec app 0",
                  "stop app/0 signal 15 kill 20\nteardown\ncleanup of everything\n", "gone" },
        };

        PLAY(node, steps);
}

TEST(a_pre_stop_hook_that_does_not_end_is_cut_off)
{
        cleanup_with(fake_node_freep) FakeNode *node = new_probed_node();
        static const NodeStep steps[] = {
                { 0, "apply", NULL, NULL,
                  POD("  terminationGracePeriodSeconds: 10\n" APP_WITH(
                          "lifecycle: {preStop: {exec: {command: [end]}}}")) },
                { 1, "stop web", "stop app/0 signal 15 in 10, kill 12\nexec app: end\n", NULL },
                { 13, "", "teardown\ncleanup of everything\n", "gone" },
        };

        PLAY(node, steps);
        EXPECT_STREQ(fake_node_pod_events(node),
                     "Pulled Created Started Stopping Killing FailedPreStopHook");
}

TEST(a_sleep_hook_waits_and_an_http_hook_sends_one_request)
{
        cleanup_with(fake_node_freep) FakeNode *node = fake_node_new();
        static const NodeStep steps[] = {
                { 0, "apply", "start\nsetup\nrun app/0\nGET http://192.0.2.1:80/up\n", READY,
                  POD(APP_WITH("lifecycle: {postStart: {httpGet: {port: 80, path: /up}}, preStop: "
                               "{sleep: {seconds: 3}}}")) },
                { 1, "stop web", "stop app/0 signal 15 in 30, kill 32\n", NULL },
                { 2, "", "", NULL },
                { 2, "", "stop app/0 signal 15 kill 27\nteardown\ncleanup of everything\n",
                  "gone" },
        };

        PLAY(node, steps);
}
