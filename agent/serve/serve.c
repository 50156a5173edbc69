/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/serve/serve-private.h"

#include "common/cleanup.h"
#include "common/clock.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

/* libmicrohttpd without threads: its epoll descriptor is a source of our loop, and it runs when
 * that is readable or when it says that it has more to do. We accept clients ourselves, to see who
 * they are and to leave them in the queue of the socket while there are too many; and we keep the
 * time ourselves, because its idle timeout starts anew with every byte. There is no timer while
 * nobody is connected. */

#define REQUEST_TIMEOUT_USEC (10 * USEC_PER_SEC)

enum {
        BACKLOG = 64,
        ACCEPT_MAX = 16, /* in one turn */
};

void serve_schedule(Serve *serve) {
        (void) sd_event_source_set_enabled(serve->turn, SD_EVENT_ONESHOT);
}

static void run(Serve *serve) {
        MHD_UNSIGNED_LONG_LONG timeout_msec;

        (void) MHD_run(serve->daemon);
        if (MHD_get_timeout(serve->daemon, &timeout_msec) == MHD_YES && timeout_msec == 0)
                serve_schedule(serve);
}

static int on_readable(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        run(userdata);
        return 0;
}

static int on_turn(sd_event_source *source, void *userdata) {
        streams_on_turn(userdata);
        run(userdata);
        return 0;
}

/* Connections */

static int on_deadline(sd_event_source *source, uint64_t usec, void *userdata) {
        Connection *connection = userdata;

        (void) shutdown(connection->fd, SHUT_RDWR);
        return 0;
}

void connection_set_deadline(Connection *connection) {
        if (sd_event_source_set_time_relative(connection->deadline,
                                              connection->serve->request_timeout_usec) >= 0)
                (void) sd_event_source_set_enabled(connection->deadline, SD_EVENT_ONESHOT);
}

void connection_clear_deadline(Connection *connection) {
        (void) sd_event_source_set_enabled(connection->deadline, SD_EVENT_OFF);
}

Connection *connection_of(struct MHD_Connection *http) {
        return MHD_get_connection_info(http, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
}

static Connection *connection_new(Serve *serve, int fd) {
        Connection *connection = calloc(1, sizeof(*connection));

        if (!connection)
                return NULL;
        connection->serve = serve;
        connection->fd = fd;
        if (sd_event_add_time_relative(serve->event, &connection->deadline, CLOCK_MONOTONIC,
                                       serve->request_timeout_usec, 0, on_deadline,
                                       connection) < 0) {
                free(connection);
                return NULL;
        }
        return connection;
}

static void connection_free(Connection *connection) {
        if (!connection)
                return;
        sd_event_source_disable_unref(connection->deadline);
        upgrade_free(connection->upgrade);
        free(connection);
}

static void on_connection(void *userdata, struct MHD_Connection *http, void **context,
                          enum MHD_ConnectionNotificationCode code) {
        Serve *serve = userdata;

        if (code == MHD_CONNECTION_NOTIFY_STARTED) {
                int fd = MHD_get_connection_info(http, MHD_CONNECTION_INFO_CONNECTION_FD)
                                 ->connect_fd;

                serve->n_connections++;
                *context = connection_new(serve, fd);
                return;
        }
        serve->n_connections--;
        connection_free(*context);
        *context = NULL;
        (void) sd_event_source_set_enabled(serve->listen, SD_EVENT_ON);
}

static void on_completed(void *userdata, struct MHD_Connection *http, void **request,
                         enum MHD_RequestTerminationCode code) {
        Connection *connection = connection_of(http);

        if (connection)
                connection_set_deadline(connection);
}

/* A NUL that was written as %00 would end the path early, and what we compare would not be what
 * was asked for. */
static size_t on_unescape(void *userdata, struct MHD_Connection *http, char *text) {
        size_t length = MHD_http_unescape(text);

        for (size_t i = 0; i < length; i++)
                if (text[i] == '\0')
                        text[i] = '?';
        return length;
}

/* The door */

static bool is_member(int fd, gid_t gid) {
        gid_t groups[256];
        socklen_t size = sizeof(groups);

        if (getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups, &size) < 0)
                return false;
        for (size_t i = 0; i < size / sizeof(*groups); i++)
                if (groups[i] == gid)
                        return true;
        return false;
}

/* The mode of the socket keeps strangers out already; this holds where somebody has opened it. */
static bool may_enter(const Serve *serve, int fd) {
        struct ucred peer;
        socklen_t size = sizeof(peer);
        struct stat st;

        if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0)
                return false;
        if (peer.uid == 0 || peer.uid == geteuid())
                return true;
        if (lstat(serve->socket_path, &st) < 0)
                return false;
        return peer.gid == st.st_gid || is_member(fd, st.st_gid);
}

static void turn_away(int fd) {
        static const char sentence[] = "only root and the group of the socket may ask this\n";
        char answer[256];
        int n = snprintf(answer, sizeof(answer),
                         "HTTP/1.1 403 Forbidden\r\nContent-Type: text/plain\r\n"
                         "Content-Length: %zu\r\nConnection: close\r\n\r\n%s",
                         sizeof(sentence) - 1, sentence);

        (void) send(fd, answer, (size_t) n, MSG_NOSIGNAL | MSG_DONTWAIT);
        close_fd(fd);
}

static int on_reopen(sd_event_source *source, uint64_t usec, void *userdata) {
        Serve *serve = userdata;

        (void) sd_event_source_set_enabled(serve->listen, SD_EVENT_ON);
        return 0;
}

/* Descriptors or memory have run out. The client stays in the queue; asking again at once would
 * only burn the processor. */
static void pause_accepting(Serve *serve) {
        (void) sd_event_source_set_enabled(serve->listen, SD_EVENT_OFF);
        if (sd_event_source_set_time_relative(serve->reopen, USEC_PER_SEC) >= 0)
                (void) sd_event_source_set_enabled(serve->reopen, SD_EVENT_ONESHOT);
}

static int accept_one(Serve *serve, int listen_fd) {
        struct sockaddr_un address;
        socklen_t length = sizeof(address);
        int fd = accept4(listen_fd, (struct sockaddr *) &address, &length,
                         SOCK_CLOEXEC | SOCK_NONBLOCK);

        if (fd < 0)
                return -errno;
        if (!may_enter(serve, fd))
                turn_away(fd);
        else
                (void) MHD_add_connection(serve->daemon, fd, (struct sockaddr *) &address, length);
        return 0;
}

static int on_listen(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        Serve *serve = userdata;
        int r = 0;

        for (unsigned i = 0; i < ACCEPT_MAX && r >= 0 && serve->n_connections < CONNECTIONS_MAX;
             i++)
                r = accept_one(serve, fd);
        if (r < 0 && r != -EAGAIN && r != -ECONNABORTED && r != -EINTR)
                pause_accepting(serve);
        if (serve->n_connections >= CONNECTIONS_MAX)
                (void) sd_event_source_set_enabled(serve->listen, SD_EVENT_OFF);
        run(serve);
        return 0;
}

/* Binds beside the name and renames over it. */
static int open_socket(Serve *serve, int *ret, Error *reterr) {
        cleanup_close int fd = -EBADF;
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        struct stat st;
        int n;

        n = snprintf(address.sun_path, sizeof(address.sun_path), "%s.new", serve->socket_path);
        if (n < 0 || (size_t) n >= sizeof(address.sun_path))
                return error_setf(reterr, ENAMETOOLONG,
                                  "too long for a socket, of which the path may have %zu bytes",
                                  sizeof(address.sun_path) - sizeof(".new"));
        fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0)
                return -errno;
        if (unlink(address.sun_path) < 0 && errno != ENOENT)
                return -errno;
        /* The mode of a socket file is the mode of its inode when it is bound. */
        if (fchmod(fd, 0660) < 0 || bind(fd, (struct sockaddr *) &address, sizeof(address)) < 0 ||
            chmod(address.sun_path, 0660) < 0 || listen(fd, BACKLOG) < 0 ||
            lstat(address.sun_path, &st) < 0 || rename(address.sun_path, serve->socket_path) < 0) {
                int r = -errno;
                (void) unlink(address.sun_path);
                return r;
        }
        serve->socket_device = st.st_dev;
        serve->socket_inode = st.st_ino;
        *ret = TAKE_FD(fd);
        return 0;
}

static int start_daemon(Serve *serve, Error *reterr) {
        serve->daemon = MHD_start_daemon(
                MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME |
                        MHD_ALLOW_UPGRADE,
                0, NULL, NULL, serve_route, serve, MHD_OPTION_NOTIFY_CONNECTION, on_connection,
                serve, MHD_OPTION_NOTIFY_COMPLETED, on_completed, serve,
                MHD_OPTION_UNESCAPE_CALLBACK, on_unescape, serve, MHD_OPTION_CONNECTION_LIMIT,
                (unsigned) CONNECTIONS_MAX, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
                (size_t) CONNECTION_MEMORY, MHD_OPTION_CONNECTION_TIMEOUT, 0U, MHD_OPTION_END);
        if (!serve->daemon)
                return error_setf(reterr, EIO, "libmicrohttpd does not start");
        return 0;
}

static int add_sources(Serve *serve, int listen_fd_consume) {
        cleanup_close int listen_fd = listen_fd_consume;
        int epoll_fd = MHD_get_daemon_info(serve->daemon, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
        int r;

        r = sd_event_add_io(serve->event, &serve->readable, epoll_fd, EPOLLIN, on_readable, serve);
        if (r < 0)
                return r;
        r = sd_event_add_defer(serve->event, &serve->turn, on_turn, serve);
        if (r < 0)
                return r;
        r = sd_event_source_set_enabled(serve->turn, SD_EVENT_OFF);
        if (r < 0)
                return r;
        r = sd_event_add_time(serve->event, &serve->reopen, CLOCK_MONOTONIC, 0, 0, on_reopen,
                              serve);
        if (r < 0)
                return r;
        r = sd_event_source_set_enabled(serve->reopen, SD_EVENT_OFF);
        if (r < 0)
                return r;
        r = sd_event_add_io(serve->event, &serve->listen, listen_fd, EPOLLIN, on_listen, serve);
        if (r < 0)
                return r;
        (void) sd_event_source_set_io_fd_own(serve->listen, true);
        TAKE_FD(listen_fd);
        return 0;
}

int serve_new(const ServeConfig *config, Serve **ret, Error *reterr) {
        cleanup_with(serve_freep) Serve *serve = calloc(1, sizeof(*serve));
        int fd = -EBADF, r;

        if (!serve)
                return -ENOMEM;
        serve->event = sd_event_ref(config->event);
        serve->handlers = config->handlers;
        serve->userdata = config->userdata;
        serve->request_timeout_usec =
                config->request_timeout_usec ? config->request_timeout_usec : REQUEST_TIMEOUT_USEC;
        serve->socket_path = strdup(config->socket_path);
        if (!serve->socket_path)
                return -ENOMEM;

        r = start_daemon(serve, reterr);
        if (r < 0)
                return r;
        r = open_socket(serve, &fd, reterr);
        if (r >= 0)
                r = add_sources(serve, fd);
        if (r < 0)
                return error_prefixf(reterr, r, "%s", config->socket_path);
        *ret = TAKE_PTR(serve);
        return 0;
}

static void remove_socket(const Serve *serve) {
        struct stat st;

        if (serve->socket_inode != 0 && lstat(serve->socket_path, &st) >= 0 &&
            st.st_dev == serve->socket_device && st.st_ino == serve->socket_inode)
                (void) unlink(serve->socket_path);
}

Serve *serve_free(Serve *serve) {
        if (!serve)
                return NULL;
        if (serve->daemon) {
                streams_drop_all(serve);
                MHD_stop_daemon(serve->daemon);
        }
        if (serve->socket_path)
                remove_socket(serve);
        sd_event_source_disable_unref(serve->listen);
        sd_event_source_disable_unref(serve->reopen);
        sd_event_source_disable_unref(serve->readable);
        sd_event_source_disable_unref(serve->turn);
        sd_event_unref(serve->event);
        free(serve->socket_path);
        free(serve);
        return NULL;
}
