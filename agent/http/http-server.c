/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/http/http-server-private.h"

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

void http_server_schedule_run(HttpServer *server) {
        (void) sd_event_source_set_enabled(server->deferred_run, SD_EVENT_ONESHOT);
}

static void run_mhd(HttpServer *server) {
        MHD_UNSIGNED_LONG_LONG timeout_msec;

        (void) MHD_run(server->mhd);
        if (MHD_get_timeout(server->mhd, &timeout_msec) == MHD_YES && timeout_msec == 0)
                http_server_schedule_run(server);
}

static int on_mhd_readable(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        run_mhd(userdata);
        return 0;
}

static int on_mhd_deferred_run(sd_event_source *source, void *userdata) {
        response_streams_resume_yielding(userdata);
        run_mhd(userdata);
        return 0;
}

/* Connections */

static int on_http_connection_deadline(sd_event_source *source, uint64_t usec, void *userdata) {
        HttpConnection *connection = userdata;

        (void) shutdown(connection->fd, SHUT_RDWR);
        return 0;
}

void http_connection_set_deadline(HttpConnection *connection) {
        if (sd_event_source_set_time_relative(connection->deadline,
                                              connection->server->request_timeout_usec) >= 0)
                (void) sd_event_source_set_enabled(connection->deadline, SD_EVENT_ONESHOT);
}

void http_connection_clear_deadline(HttpConnection *connection) {
        (void) sd_event_source_set_enabled(connection->deadline, SD_EVENT_OFF);
}

HttpConnection *http_connection_of(struct MHD_Connection *http) {
        return MHD_get_connection_info(http, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
}

static HttpConnection *http_connection_new(HttpServer *server, int fd) {
        HttpConnection *connection = calloc(1, sizeof(*connection));

        if (!connection)
                return NULL;
        connection->server = server;
        connection->fd = fd;
        if (sd_event_add_time_relative(server->event, &connection->deadline, CLOCK_MONOTONIC,
                                       server->request_timeout_usec, 0, on_http_connection_deadline,
                                       connection) < 0) {
                free(connection);
                return NULL;
        }
        return connection;
}

static void http_connection_free(HttpConnection *connection) {
        if (!connection)
                return;
        sd_event_source_disable_unref(connection->deadline);
        exec_upgrade_free(connection->upgrade);
        free(connection);
}

static void on_mhd_connection(void *userdata, struct MHD_Connection *http, void **context,
                              enum MHD_ConnectionNotificationCode code) {
        HttpServer *server = userdata;

        if (code == MHD_CONNECTION_NOTIFY_STARTED) {
                int fd = MHD_get_connection_info(http, MHD_CONNECTION_INFO_CONNECTION_FD)
                                 ->connect_fd;

                server->n_connections++;
                *context = http_connection_new(server, fd);
                return;
        }
        server->n_connections--;
        http_connection_free(*context);
        *context = NULL;
        (void) sd_event_source_set_enabled(server->listen_source, SD_EVENT_ON);
}

static void on_mhd_request_completed(void *userdata, struct MHD_Connection *http, void **request,
                                     enum MHD_RequestTerminationCode code) {
        HttpConnection *connection = http_connection_of(http);

        if (connection)
                http_connection_set_deadline(connection);
}

/* A NUL that was written as %00 would end the path early, and what we compare would not be what
 * was asked for. */
static size_t unescape_request_path(void *userdata, struct MHD_Connection *http, char *text) {
        size_t length = MHD_http_unescape(text);

        for (size_t i = 0; i < length; i++)
                if (text[i] == '\0')
                        text[i] = '?';
        return length;
}

/* The door */

static bool is_peer_in_group(int fd, gid_t gid) {
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
static bool is_peer_allowed(const HttpServer *server, int fd) {
        struct ucred peer;
        socklen_t size = sizeof(peer);
        struct stat st;

        if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0)
                return false;
        if (peer.uid == 0 || peer.uid == geteuid())
                return true;
        if (lstat(server->socket_path, &st) < 0)
                return false;
        return peer.gid == st.st_gid || is_peer_in_group(fd, st.st_gid);
}

static void refuse_peer(int fd) {
        static const char sentence[] = "only root and the group of the socket may ask this\n";
        char answer[256];
        int n = snprintf(answer, sizeof(answer),
                         "HTTP/1.1 403 Forbidden\r\nContent-Type: text/plain\r\n"
                         "Content-Length: %zu\r\nConnection: close\r\n\r\n%s",
                         sizeof(sentence) - 1, sentence);

        (void) send(fd, answer, (size_t) n, MSG_NOSIGNAL | MSG_DONTWAIT);
        close_fd(fd);
}

static int on_accept_retry_timer(sd_event_source *source, uint64_t usec, void *userdata) {
        HttpServer *server = userdata;

        (void) sd_event_source_set_enabled(server->listen_source, SD_EVENT_ON);
        return 0;
}

/* Descriptors or memory have run out. The client stays in the queue; asking again at once would
 * only burn the processor. */
static void pause_accepting_clients(HttpServer *server) {
        (void) sd_event_source_set_enabled(server->listen_source, SD_EVENT_OFF);
        if (sd_event_source_set_time_relative(server->accept_retry_timer, USEC_PER_SEC) >= 0)
                (void) sd_event_source_set_enabled(server->accept_retry_timer, SD_EVENT_ONESHOT);
}

static int accept_http_client(HttpServer *server, int listen_fd) {
        struct sockaddr_un address;
        socklen_t length = sizeof(address);
        int fd = accept4(listen_fd, (struct sockaddr *) &address, &length,
                         SOCK_CLOEXEC | SOCK_NONBLOCK);

        if (fd < 0)
                return -errno;
        if (!is_peer_allowed(server, fd))
                refuse_peer(fd);
        else
                (void) MHD_add_connection(server->mhd, fd, (struct sockaddr *) &address, length);
        return 0;
}

static int on_http_listen_socket(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        HttpServer *server = userdata;
        int r = 0;

        for (unsigned i = 0;
             i < ACCEPT_MAX && r >= 0 && server->n_connections < HTTP_CONNECTIONS_MAX; i++)
                r = accept_http_client(server, fd);
        if (r < 0 && r != -EAGAIN && r != -ECONNABORTED && r != -EINTR)
                pause_accepting_clients(server);
        if (server->n_connections >= HTTP_CONNECTIONS_MAX)
                (void) sd_event_source_set_enabled(server->listen_source, SD_EVENT_OFF);
        run_mhd(server);
        return 0;
}

/* Binds beside the name and renames over it. */
static int open_http_socket(HttpServer *server, int *ret, Error *reterr) {
        cleanup_close int fd = -EBADF;
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        struct stat st;
        int n;

        n = snprintf(address.sun_path, sizeof(address.sun_path), "%s.new", server->socket_path);
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
            lstat(address.sun_path, &st) < 0 || rename(address.sun_path, server->socket_path) < 0) {
                int r = -errno;
                (void) unlink(address.sun_path);
                return r;
        }
        server->socket_device = st.st_dev;
        server->socket_inode = st.st_ino;
        *ret = TAKE_FD(fd);
        return 0;
}

static int start_mhd(HttpServer *server, Error *reterr) {
        server->mhd = MHD_start_daemon(
                MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME |
                        MHD_ALLOW_UPGRADE,
                0, NULL, NULL, http_route_request, server, MHD_OPTION_NOTIFY_CONNECTION,
                on_mhd_connection, server, MHD_OPTION_NOTIFY_COMPLETED, on_mhd_request_completed,
                server, MHD_OPTION_UNESCAPE_CALLBACK, unescape_request_path, server,
                MHD_OPTION_CONNECTION_LIMIT, (unsigned) HTTP_CONNECTIONS_MAX,
                MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t) HTTP_CONNECTION_MEMORY,
                MHD_OPTION_CONNECTION_TIMEOUT, 0U, MHD_OPTION_END);
        if (!server->mhd)
                return error_setf(reterr, EIO, "libmicrohttpd does not start");
        return 0;
}

static int add_http_event_sources(HttpServer *server, int listen_fd_consume) {
        cleanup_close int listen_fd = listen_fd_consume;
        int epoll_fd = MHD_get_daemon_info(server->mhd, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
        int r;

        r = sd_event_add_io(server->event, &server->mhd_source, epoll_fd, EPOLLIN, on_mhd_readable,
                            server);
        if (r < 0)
                return r;
        r = sd_event_add_defer(server->event, &server->deferred_run, on_mhd_deferred_run, server);
        if (r < 0)
                return r;
        r = sd_event_source_set_enabled(server->deferred_run, SD_EVENT_OFF);
        if (r < 0)
                return r;
        r = sd_event_add_time(server->event, &server->accept_retry_timer, CLOCK_MONOTONIC, 0, 0,
                              on_accept_retry_timer, server);
        if (r < 0)
                return r;
        r = sd_event_source_set_enabled(server->accept_retry_timer, SD_EVENT_OFF);
        if (r < 0)
                return r;
        r = sd_event_add_io(server->event, &server->listen_source, listen_fd, EPOLLIN,
                            on_http_listen_socket, server);
        if (r < 0)
                return r;
        (void) sd_event_source_set_io_fd_own(server->listen_source, true);
        TAKE_FD(listen_fd);
        return 0;
}

int http_server_new(const HttpServerConfig *config, HttpServer **ret, Error *reterr) {
        cleanup_with(http_server_freep) HttpServer *server = calloc(1, sizeof(*server));
        int fd = -EBADF, r;

        if (!server)
                return -ENOMEM;
        server->event = sd_event_ref(config->event);
        server->handlers = config->handlers;
        server->userdata = config->userdata;
        server->request_timeout_usec =
                config->request_timeout_usec ? config->request_timeout_usec : REQUEST_TIMEOUT_USEC;
        server->socket_path = strdup(config->socket_path);
        if (!server->socket_path)
                return -ENOMEM;

        r = start_mhd(server, reterr);
        if (r < 0)
                return r;
        r = open_http_socket(server, &fd, reterr);
        if (r >= 0)
                r = add_http_event_sources(server, fd);
        if (r < 0)
                return error_prefixf(reterr, r, "%s", config->socket_path);
        *ret = TAKE_PTR(server);
        return 0;
}

static void remove_http_socket(const HttpServer *server) {
        struct stat st;

        if (server->socket_inode != 0 && lstat(server->socket_path, &st) >= 0 &&
            st.st_dev == server->socket_device && st.st_ino == server->socket_inode)
                (void) unlink(server->socket_path);
}

HttpServer *http_server_free(HttpServer *server) {
        if (!server)
                return NULL;
        if (server->mhd) {
                response_streams_abort_all(server);
                MHD_stop_daemon(server->mhd);
        }
        if (server->socket_path)
                remove_http_socket(server);
        sd_event_source_disable_unref(server->listen_source);
        sd_event_source_disable_unref(server->accept_retry_timer);
        sd_event_source_disable_unref(server->mhd_source);
        sd_event_source_disable_unref(server->deferred_run);
        sd_event_unref(server->event);
        free(server->socket_path);
        free(server);
        return NULL;
}
