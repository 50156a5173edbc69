/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/launch/launch-server.h"

#include "agent/launch/launch-keeper.h"
#include "agent/launch/launch-peer.h"
#include "common/cleanup.h"
#include "common/log.h"

#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

static void on_keeper_exit(int signal) {
        /* The signal only interrupts ppoll(2). */
}

static int catch_keeper_exits(sigset_t *ret_waiting) {
        const struct sigaction action = { .sa_handler = on_keeper_exit };
        sigset_t blocked;

        (void) sigemptyset(&blocked);
        (void) sigaddset(&blocked, SIGCHLD);
        if (sigaction(SIGCHLD, &action, NULL) < 0 ||
            sigprocmask(SIG_BLOCK, &blocked, ret_waiting) < 0)
                return -errno;
        (void) sigdelset(ret_waiting, SIGCHLD);
        return 0;
}

/* Whether there is no keeper. */
static bool reap_keepers(void) {
        pid_t pid;

        do
                pid = waitpid(-1, NULL, WNOHANG);
        while (pid > 0);
        return pid < 0 && errno == ECHILD;
}

static void start_keeper(int listen_fd, const LaunchServerSpec *spec) {
        cleanup_close int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC);
        pid_t server = getpid(), pid;

        if (fd < 0 || !launch_peer_is_permitted(fd, spec->unit))
                return;
        pid = fork();
        if (pid == 0) {
                (void) close(listen_fd);
                (void) signal(SIGCHLD, SIG_DFL);
                _exit(launch_keeper(fd, spec->directory, server));
        }
        if (pid < 0)
                (void) log_error_errno(-errno, "Cannot start a process");
}

int launch_serve(int listen_fd, const LaunchServerSpec *spec) {
        struct pollfd listener = { .fd = listen_fd, .events = POLLIN };
        struct timespec idle = { .tv_sec = spec->idle_sec };
        sigset_t waiting;
        int r = catch_keeper_exits(&waiting);

        while (r >= 0) {
                int n = ppoll(&listener, 1, &idle, &waiting);

                if (n < 0 && errno != EINTR)
                        r = -errno;
                if (n > 0)
                        start_keeper(listen_fd, spec);
                else if (reap_keepers() && n == 0)
                        return 0;
        }
        return r;
}
