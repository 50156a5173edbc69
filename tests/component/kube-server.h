/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The server from kube-server.py, and an event loop for requests to it. */

#include "agent/kubeclient/kube-client.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/file.h"
#include "tests/test.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

enum {
        PATIENCE_SEC = 180,
};

typedef struct World {
        sd_event *event;
        KubeClient *client;
        Kubeconfig config;
        pid_t pid;
        int server_fd;
        char url[64];
} World;

static inline char *world_path(const char *name) {
        char *path = path_join(test_directory(), name);

        REQUIRE(path);
        return path;
}

static inline void world_serve(World *world, const char *option) {
        const char *directory = test_directory();
        int fds[2];
        char port[16] = "";
        size_t n = 0;

        REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) == 0);
        world->pid = fork();
        REQUIRE(world->pid >= 0);
        if (world->pid == 0) {
                (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
                (void) dup2(fds[1], STDIN_FILENO);
                (void) dup2(fds[1], STDOUT_FILENO);
                execl("/usr/bin/python3", "python3", SOURCE_DIR "/tests/component/kube-server.py",
                      directory, option, (char *) NULL);
                _exit(1);
        }
        close(fds[1]);
        world->server_fd = fds[0];
        while (n < sizeof(port) - 1 && read(fds[0], port + n, 1) == 1 && port[n] != '\n')
                n++;
        REQUIRE(n > 0 && port[n] == '\n');
        port[n] = '\0';
        (void) snprintf(world->url, sizeof(world->url), "https://127.0.0.1:%s", port);
}

static inline void world_init(World *world, const char *option) {
        *world = (World){ .server_fd = -EBADF };
        REQUIRE(sd_event_new(&world->event) >= 0);
        world_serve(world, option);
        world->config = (Kubeconfig){ .path = world_path("kubeconfig"),
                                      .server = strdup(world->url),
                                      .authority_file = world_path("ca.crt"),
                                      .namespace = strdup("default") };
}

static inline void world_connect(World *world) {
        cleanup_error Error error = ERROR_NULL;
        int r = kube_client_new(world->event, &world->config, &world->client, &error);

        if (r < 0)
                printf("%s\n", error_message(&error, r));
        REQUIRE(r >= 0);
}

static inline void world_kill(World *world) {
        if (world->pid <= 0)
                return;
        (void) kill(world->pid, SIGKILL);
        (void) waitpid(world->pid, NULL, 0);
        world->pid = 0;
        world->server_fd = close_fd(world->server_fd);
}

static inline void world_done(World *world) {
        kube_client_free(world->client);
        kubeconfig_done(&world->config);
        sd_event_unref(world->event);
        world_kill(world);
}

/* Runs the loop until the condition holds. */
#define WAIT_UNTIL(world, condition)                                                    \
        do {                                                                            \
                uint64_t deadline_ = now_boottime_usec() + PATIENCE_SEC * USEC_PER_SEC; \
                while (!(condition) && now_boottime_usec() < deadline_)                 \
                        REQUIRE(sd_event_run((world)->event, USEC_PER_SEC) >= 0);       \
                EXPECT(condition);                                                      \
        } while (0)

/* A response that is kept beyond the callback. */
typedef struct Answer {
        bool is_done;
        char *error;
        unsigned status;
        char *body;
        size_t length;
        uint64_t retry_after_usec;
} Answer;

static inline void answer_keep(const KubeResponse *answer, void *userdata) {
        Answer *kept = userdata;

        EXPECT(!kept->is_done);
        *kept = (Answer){ .is_done = true,
                          .error = answer->error ? strdup(answer->error) : NULL,
                          .status = answer->status,
                          .body = strndup(answer->body ? answer->body : "", answer->length),
                          .length = answer->length,
                          .retry_after_usec = answer->retry_after_usec };
}

static inline void answer_done(Answer *answer) {
        free(answer->error);
        free(answer->body);
        *answer = (Answer){ 0 };
}
#define cleanup_answer cleanup_with(answer_done)

/* Sends a request, and waits for its result. */
static inline void ask(World *world, const KubeRequestSpec *call, Answer *ret) {
        KubeRequestSpec asked = *call;
        KubeRequest *request = NULL;

        answer_done(ret);
        asked.method = asked.method ? asked.method : "GET";
        asked.on_done = answer_keep;
        asked.userdata = ret;
        REQUIRE(kube_client_start_request(world->client, &asked, &request, NULL) >= 0);
        WAIT_UNTIL(world, ret->is_done);
}
