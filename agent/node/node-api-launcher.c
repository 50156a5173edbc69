/* SPDX-License-Identifier: Apache-2.0 */

/* mainstay-api gets the listening socket as its standard input, and a pipe as its standard output,
 * to which nothing is written. When the agent has exited, the pipe has no reader, and mainstay-api
 * closes the socket, so that the next agent can listen. */

#include "agent/node/node-api-launcher.h"

#include "common/child.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/event-source.h"
#include "common/listening-port.h"
#include "common/log.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define RETRY_FIRST_USEC USEC_PER_SEC
#define RETRY_MAX_USEC   (64 * USEC_PER_SEC)

enum {
        BACKLOG = 128,
};

struct NodeApiLauncher {
        NodeApiLauncherSpec spec;
        int listen_fd;                  /* -EBADF: not yet */
        int life_fds[2];                /* the pipe; the second descriptor is mainstay-api's */
        sd_event_source *listen_source; /* a client connects; off while mainstay-api runs */
        sd_event_source *exit_source;
        sd_event_source *retry_timer;
        uint64_t retry_usec;  /* delay after the next failure */
        bool is_user_missing; /* the missing user was logged */
};

static void watch_listener(NodeApiLauncher *launcher);

/* ---- retries ---- */

static void retry_launcher_later(NodeApiLauncher *launcher) {
        (void) event_timer_arm(launcher->retry_timer, launcher->retry_usec);
        launcher->retry_usec = MIN(2 * launcher->retry_usec, RETRY_MAX_USEC);
}

static int on_launcher_retry(sd_event_source *source, uint64_t usec, void *userdata) {
        watch_listener(userdata);
        return 0;
}

/* ---- the process ---- */

static int on_node_api_exit(sd_event_source *source, const siginfo_t *si, void *userdata) {
        NodeApiLauncher *launcher = userdata;
        bool was_idle = si->si_code == CLD_EXITED && si->si_status == 0;

        launcher->exit_source = sd_event_source_disable_unref(launcher->exit_source);
        if (was_idle) {
                launcher->retry_usec = RETRY_FIRST_USEC;
                watch_listener(launcher);
                return 0;
        }
        log_warning("'%s' %s %d", launcher->spec.program,
                    si->si_code == CLD_EXITED ? "exited with status" : "was killed by signal",
                    si->si_status);
        retry_launcher_later(launcher);
        return 0;
}

static int spawn_node_api(const NodeApiLauncher *launcher, pid_t *ret_pid) {
        char activated[] = "--activated", option[] = "--socket";
        char *const argv[] = { launcher->spec.program, activated, option,
                               launcher->spec.agent_socket, NULL };

        return child_spawn_detached(argv, launcher->listen_fd, launcher->life_fds[1], ret_pid);
}

static int start_node_api(NodeApiLauncher *launcher) {
        pid_t pid = 0;
        int r = spawn_node_api(launcher, &pid);

        if (r < 0)
                return r;
        r = sd_event_add_child(launcher->spec.event, &launcher->exit_source, pid, WEXITED,
                               on_node_api_exit, launcher);
        return r < 0 ? r : child_source_rearm(launcher->exit_source);
}

/* The program's path depends on the distribution. */
static const char *find_no_login_shell(void) {
        static const char *const paths[] = { "/usr/sbin/nologin", "/sbin/nologin",
                                             "/usr/bin/nologin" };

        for (size_t i = 0; i < N_ELEMENTS(paths); i++)
                if (access(paths[i], X_OK) >= 0)
                        return paths[i];
        return "/bin/false";
}

/* Clients are refused immediately instead of waiting until they give up. */
static void refuse_without_user(NodeApiLauncher *launcher) {
        (void) close_fd(accept4(launcher->listen_fd, NULL, NULL, SOCK_CLOEXEC));
        if (!launcher->is_user_missing)
                log_error("Closing connections to port %u: there is no user 'mainstay-api' for "
                          "'%s' to run as; create it: useradd --system --no-create-home --shell "
                          "%s mainstay-api. The next client is served then",
                          config_node_api_port(launcher->spec.config), launcher->spec.program,
                          find_no_login_shell());
        launcher->is_user_missing = true;
}

static int on_node_api_client(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        NodeApiLauncher *launcher = userdata;
        int r;

        if (!launcher->spec.admit_user(launcher->spec.userdata)) {
                refuse_without_user(launcher);
                return 0;
        }
        launcher->is_user_missing = false;
        r = sd_event_source_set_enabled(source, SD_EVENT_OFF);
        if (r >= 0)
                r = start_node_api(launcher);
        if (r < 0) {
                (void) log_warning_errno(r, "Cannot start %s", launcher->spec.program);
                retry_launcher_later(launcher);
        }
        return 0;
}

/* ---- the socket ---- */

typedef union ListenAddress {
        struct sockaddr any;
        struct sockaddr_in ipv4;
        struct sockaddr_in6 ipv6;
} ListenAddress;

/* An address family that the kernel does not support results in -EAFNOSUPPORT. */
static int bind_listener(const ListenAddress *address) {
        static const int on = 1, off = 0;
        bool is_ipv6 = address->any.sa_family == AF_INET6;
        cleanup_close int fd =
                socket(address->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

        if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) < 0 ||
            (is_ipv6 && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off)) < 0) ||
            bind(fd, &address->any,
                 (socklen_t) (is_ipv6 ? sizeof(address->ipv6) : sizeof(address->ipv4))) < 0 ||
            listen(fd, BACKLOG) < 0)
                return -errno;
        return TAKE_FD(fd);
}

static int open_listener(const Config *config) {
        const char *text = config->address ? config->address : "::";
        uint16_t port = htons(config_node_api_port(config));
        ListenAddress ipv6 = { .ipv6 = { .sin6_family = AF_INET6, .sin6_port = port } };
        ListenAddress ipv4 = { .ipv4 = { .sin_family = AF_INET, .sin_port = port } };
        int fd;

        if (inet_pton(AF_INET, text, &ipv4.ipv4.sin_addr) == 1)
                return bind_listener(&ipv4);
        if (inet_pton(AF_INET6, text, &ipv6.ipv6.sin6_addr) != 1)
                return -EINVAL;
        fd = bind_listener(&ipv6);
        return fd == -EAFNOSUPPORT && !config->address ? bind_listener(&ipv4) : fd;
}

static int listen_for_clients(NodeApiLauncher *launcher) {
        int fd = open_listener(launcher->spec.config);

        if (fd < 0)
                return fd;
        launcher->listen_fd = fd;
        launcher->retry_usec = RETRY_FIRST_USEC;
        return sd_event_add_io(launcher->spec.event, &launcher->listen_source, fd, EPOLLIN,
                               on_node_api_client, launcher);
}

/* The first failure is not logged: the previous agent's mainstay-api may still have the port.
 */
static void watch_listener(NodeApiLauncher *launcher) {
        int r = launcher->listen_source
                        ? sd_event_source_set_enabled(launcher->listen_source, SD_EVENT_ON)
                        : listen_for_clients(launcher);

        if (r >= 0)
                return;
        if (launcher->retry_usec == 2 * RETRY_FIRST_USEC)
                (void) log_warning_errno(r, "Cannot listen at port %u for mainstay-api",
                                         config_node_api_port(launcher->spec.config));
        retry_launcher_later(launcher);
}

static int node_api_launcher_new(const NodeApiLauncherSpec *spec, NodeApiLauncher **ret) {
        NodeApiLauncher *launcher = calloc(1, sizeof(*launcher));
        int r;

        if (!launcher)
                return -ENOMEM;
        launcher->spec = *spec;
        launcher->listen_fd = launcher->life_fds[0] = launcher->life_fds[1] = -EBADF;
        launcher->retry_usec = RETRY_FIRST_USEC;
        r = pipe2(launcher->life_fds, O_CLOEXEC) < 0 ? -errno : 0;
        if (r >= 0)
                r = event_add_disabled_timer(spec->event, &launcher->retry_timer, CLOCK_MONOTONIC,
                                             0, on_launcher_retry, launcher);
        if (r < 0) {
                node_api_launcher_free(launcher);
                return r;
        }
        watch_listener(launcher);
        *ret = launcher;
        return 0;
}

void node_api_launcher_start(const NodeApiLauncherSpec *spec, NodeApiLauncher **ret) {
        unsigned port = config_node_api_port(spec->config);
        int r = 0;

        if (!spec->config->enable_server.value) {
                if (spec->has_joined && !spec->has_systemd && !spec->config->enable_server.is_set &&
                    port_has_listener((uint16_t) port) == 0)
                        log_info("Nothing listens at port %u: kubectl logs, kubectl exec and "
                                 "metrics do not reach this node; set 'enableServer: true' in the "
                                 "configuration",
                                 port);
                return;
        }
        if (!spec->has_systemd)
                r = node_api_launcher_new(spec, ret);
        else if (port_has_listener((uint16_t) port) == 0)
                log_warning("Nothing listens at port %u although enableServer is true; enable "
                            "mainstay-api.socket",
                            port);
        if (r < 0)
                (void) log_error_errno(r, "Cannot listen at port %u for mainstay-api", port);
}

NodeApiLauncher *node_api_launcher_free(NodeApiLauncher *launcher) {
        if (!launcher)
                return NULL;
        sd_event_source_disable_unref(launcher->listen_source);
        sd_event_source_disable_unref(launcher->exit_source);
        sd_event_source_disable_unref(launcher->retry_timer);
        close_fd(launcher->listen_fd);
        close_fd(launcher->life_fds[0]);
        close_fd(launcher->life_fds[1]);
        free(launcher);
        return NULL;
}
