/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* An HTTP server on a separate socket with a fake agent, run by the real event loop in the test's
 * thread. Clients are plain sockets that never block. All functions are static, for test programs
 * of one file. */

#include "tests/test.h"

#include "agent/http/http-server.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/log.h"

#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

enum {
        PODS_MAX = 2000,
        DEADLINE_SEC = 180
};

/* No test uses all of these functions. */
#pragma GCC diagnostic ignored "-Wunused-function"

/* The agent */

typedef struct FakeAgent {
        char *keys[PODS_MAX]; /* sorted */
        char *jsons[PODS_MAX];
        size_t n_pods;
        unsigned n_events;
        unsigned n_sets, state_of_sets;
        char executed[128]; /* "namespace/pod/container word word <streams>" */
        int executed_fd;
        char deleted[64]; /* "namespace/pod/grace" */
        char ordered[64];
        char *(*images)(void); /* NULL: none */
        char pulled[128];
        bool is_ready;
        bool is_live; /* state of the only log */
} FakeAgent;

static FakeAgent fake_agent;
static uint64_t request_timeout_usec;
static sd_event *event;
static HttpServer *server;
static char socket_path[100];
static char log_directory[160];

static void agent_add(const char *key, const char *json) {
        REQUIRE(fake_agent.n_pods < PODS_MAX);
        fake_agent.keys[fake_agent.n_pods] = strdup(key);
        fake_agent.jsons[fake_agent.n_pods++] = strdup(json);
}

static void agent_clear(void) {
        for (size_t i = 0; i < fake_agent.n_pods; i++) {
                free(fake_agent.keys[i]);
                free(fake_agent.jsons[i]);
        }
        fake_agent = (FakeAgent){ 0 };
}

static int next_pod(void *userdata, const char *after, char **ret_key, char **ret_json) {
        EXPECT(userdata == &fake_agent);
        for (size_t i = 0; i < fake_agent.n_pods; i++) {
                if (after && strcmp(fake_agent.keys[i], after) <= 0)
                        continue;
                *ret_key = strdup(fake_agent.keys[i]);
                *ret_json = strdup(fake_agent.jsons[i]);
                return 1;
        }
        return 0;
}

/* Number 3 returns {"n":3}. */
static int next_event(void *userdata, uint64_t after, uint64_t *ret_number, char **ret_json) {
        if (after >= fake_agent.n_events)
                return 0;
        *ret_number = after + 1;
        return asprintf(ret_json, "{\"n\":%u}", (unsigned) after + 1) < 0 ? -ENOMEM : 1;
}

static void report_manifests(void *userdata, HttpManifestReport *into) {
        char pod[] = "default/web-n1", warning[] = "web.yaml:9:5: spec.foo: unknown field";
        char *pods[] = { pod, NULL }, *warnings[] = { warning, NULL };

        http_report_manifest_directory(into, "/etc/kubernetes/manifests", NULL, NULL);
        http_report_manifest(
                into,
                &(HttpManifestStatus){ .file = "web.yaml", .pods = pods, .warnings = warnings });
        http_report_manifest(into,
                             &(HttpManifestStatus){ .file = "bad.yaml",
                                                    .error = "bad.yaml:1:1: is \"no\" mapping",
                                                    .error_since = 1767323045 * USEC_PER_SEC });
        http_report_archive_error(into, "x.tar", "is not an archive");
}

static int find_log(void *userdata, const char *namespace, const char *pod, const char *container,
                    bool previous, HttpContainerLog *ret, Error *reterr) {
        if (!streq(namespace, "default") || !streq(pod, "web-n1"))
                return error_setf(reterr, ENOENT, "pods \"%s\" not found", pod);
        if (streq(container, "late"))
                return error_setf(reterr, EAGAIN, "container \"late\" is waiting to start");
        ret->directory = strdup(log_directory);
        ret->attempt = previous ? 0 : 1;
        ret->is_live = fake_agent.is_live && !previous;
        return 0;
}

static int delete_pod(void *userdata, const char *namespace, const char *pod, int64_t grace_seconds,
                      Error *reterr) {
        if (streq(pod, "gone-n1"))
                return error_setf(reterr, ENOENT, "pods \"%s\" not found", pod);
        (void) snprintf(fake_agent.deleted, sizeof(fake_agent.deleted), "%s/%s/%d", namespace, pod,
                        (int) grace_seconds);
        return 0;
}

static int exec_in(void *userdata, const char *namespace, const char *pod, const char *container,
                   const HttpExecOptions *exec, int socket_fd, Error *reterr) {
        if (streq(pod, "gone-n1"))
                return error_setf(reterr, ENOENT, "pods \"%s\" not found", pod);
        (void) snprintf(fake_agent.executed, sizeof(fake_agent.executed), "%s/%s/%s %s %s %d%d%d%d",
                        namespace, pod, container, exec->argv[0], strna(exec->argv[1]),
                        exec->has_input, exec->has_output, exec->has_error, exec->has_terminal);
        if (socket_fd >= 0)
                fake_agent.executed_fd = fcntl(socket_fd, F_DUPFD_CLOEXEC, 3);
        return 0;
}

static int is_ready(void *userdata, Error *reterr) {
        return fake_agent.is_ready ? 0 : error_setf(reterr, EAGAIN, "the first scan is under way");
}

static char *dump_agent(void *userdata) {
        return strdup("Agent:\n  version: 1\n");
}

static char *print_metrics(void *userdata) {
        return strdup("kubelet_running_pods 3\n");
}

static int each_daemonset(void *userdata, http_each_object_t each, void *context) {
        int r = 0;

        for (unsigned i = 0; i < fake_agent.n_sets && r >= 0; i++) {
                char key[32], json[64];

                (void) snprintf(key, sizeof(key), "default/set%u", i);
                (void) snprintf(json, sizeof(json), "{\"set\":%u,\"state\":%u}", i,
                                fake_agent.state_of_sets);
                r = each(key, json, context);
        }
        return r;
}

static char *print_node(void *userdata) {
        return strdup("{\"kind\":\"Node\"}\n");
}

static int order_daemonset(void *userdata, const char *namespace, const char *name,
                           const char *verb, int64_t revision, Error *reterr) {
        if (streq(name, "gone"))
                return error_setf(reterr, ENOENT, "daemonsets.apps \"%s\" not found", name);
        (void) snprintf(fake_agent.ordered, sizeof(fake_agent.ordered), "%s %s/%s %d", verb,
                        namespace, name, (int) revision);
        return revision == 9; /* there is nothing to do */
}

static char *list_images(void *userdata) {
        return fake_agent.images ? fake_agent.images() : NULL;
}

static int pull_image(void *userdata, const char *image, Error *reterr) {
        (void) snprintf(fake_agent.pulled, sizeof(fake_agent.pulled), "%s", image);
        return 0;
}

static int no_revisions(void *userdata, http_each_object_t each, void *context) {
        return -ENOMEM;
}

static const HttpServerHandlers handlers = { .next_pod = next_pod,
                                             .next_event = next_event,
                                             .report = report_manifests,
                                             .find_log = find_log,
                                             .delete_pod = delete_pod,
                                             .foreach_daemonset = each_daemonset,
                                             .foreach_revision = no_revisions,
                                             .node = print_node,
                                             .run_daemonset_action = order_daemonset,
                                             .exec = exec_in,
                                             .images = list_images,
                                             .pull_image = pull_image,
                                             .is_ready = is_ready,
                                             .metrics = print_metrics,
                                             .resource_metrics = print_metrics,
                                             .dump = dump_agent };

static void start_http_server(void) {
        cleanup_error Error error = ERROR_NULL;
        HttpServerConfig config;
        int r;

        agent_clear();
        (void) snprintf(socket_path, sizeof(socket_path), "%s/mainstay.sock", test_directory());
        (void) snprintf(log_directory, sizeof(log_directory), "%s/pod/app", test_directory());
        REQUIRE(sd_event_new(&event) >= 0);
        config = (HttpServerConfig){ event, socket_path, &handlers, &fake_agent,
                                     request_timeout_usec };
        r = http_server_new(&config, &server, &error);
        if (r < 0)
                printf("%s\n", error_message(&error, r));
        REQUIRE(r >= 0);
}

static void stop_http_server(void) {
        server = http_server_free(server);
        event = sd_event_unref(event);
        agent_clear();
}

/* Writes into the log directory of the only container. */
static void append_log(const char *name, const char *text) {
        cleanup_free char *path = path_join(log_directory, name);
        cleanup_close int fd = -EBADF;

        REQUIRE(mkdir_parents_at(AT_FDCWD, log_directory, 0755) >= 0);
        fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
        REQUIRE(fd >= 0);
        REQUIRE(write_all(fd, text, strlen(text)) >= 0);
}

/* A client */

typedef struct HttpTestClient {
        int fd;
        char *data;
        size_t length;
        bool is_closed;
} HttpTestClient;

static HttpTestClient client_open(void) {
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        HttpTestClient client = { .data = strdup("") };

        (void) snprintf(address.sun_path, sizeof(address.sun_path), "%s", socket_path);
        client.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        REQUIRE(client.fd >= 0);
        REQUIRE(connect(client.fd, (struct sockaddr *) &address, sizeof(address)) >= 0);
        return client;
}

static void client_close(HttpTestClient *client) {
        client->fd = close_fd(client->fd);
        free(client->data);
        client->data = NULL;
}

static void client_say(HttpTestClient *client, const char *text) {
        REQUIRE(send(client->fd, text, strlen(text), MSG_NOSIGNAL) == (ssize_t) strlen(text));
}

static void client_ask(HttpTestClient *client, const char *path) {
        char request[512];

        (void) snprintf(request, sizeof(request),
                        "GET %s HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", path);
        client_say(client, request);
}

static void client_read(HttpTestClient *client) {
        for (;;) {
                ssize_t n;

                client->data = realloc(client->data, client->length + 64 * KIB + 1);
                REQUIRE(client->data);
                n = recv(client->fd, client->data + client->length, 64 * KIB, 0);
                if (n <= 0) {
                        client->is_closed = n == 0 || errno != EAGAIN;
                        client->data[client->length] = '\0';
                        return;
                }
                client->length += (size_t) n;
        }
}

static void run_loop_once(void) {
        REQUIRE(sd_event_run(event, 10 * USEC_PER_MSEC) >= 0);
}

/* Runs the loop and reads until the text is received (NULL: until the server closes). */
static bool client_wait(HttpTestClient *client, const char *text) {
        uint64_t end = now_boottime_usec() + DEADLINE_SEC * USEC_PER_SEC;

        while (now_boottime_usec() < end) {
                client_read(client);
                if (text && strstr(client->data, text))
                        return true;
                if (client->is_closed)
                        return text == NULL;
                run_loop_once();
        }
        return false;
}

/* The body of a response with its chunks joined; 'client->data' is consumed. */
static const char *client_body(HttpTestClient *client) {
        char *body = strstr(client->data, "\r\n\r\n"), *to, *from;

        if (!body)
                return "(no body)";
        body += 4;
        if (!memmem(client->data, (size_t) (body - client->data), "chunked", 7))
                return body;
        for (to = from = body;;) {
                char *end;
                size_t n = strtoul(from, &end, 16);

                if (end == from || strncmp(end, "\r\n", 2) != 0)
                        return "(a chunk is broken)";
                memmove(to, end + 2, n);
                to += n;
                from = end + 2 + n + 2;
                if (n == 0)
                        break;
        }
        *to = '\0';
        return body;
}

/* One request and its response. */
static void expect_answer(const char *path, const char *status, const char *body) {
        HttpTestClient client = client_open();

        client_ask(&client, path);
        EXPECT(client_wait(&client, NULL));
        EXPECT(strncmp(client.data, status, strlen(status)) == 0);
        if (strncmp(client.data, status, strlen(status)) != 0)
                printf("%s: %.200s\n", path, client.data);
        EXPECT_STREQ(client_body(&client), body);
        client_close(&client);
}

/* Nothing wakes the loop, except once to return memory after a request. */
static void expect_idle(void) {
        for (unsigned i = 0; i < 200 && sd_event_run(event, 0) > 0; i++)
                ;
        (void) sd_event_run(event, 300 * USEC_PER_MSEC);
        EXPECT_EQ(sd_event_run(event, 200 * USEC_PER_MSEC), 0);
}
