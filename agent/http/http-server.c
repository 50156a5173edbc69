/* SPDX-License-Identifier: Apache-2.0 */

/* The socket and the connections of the HTTP server. Clients are accepted here, so that their
 * credentials are checked, they are counted per user, and they wait while there are too many. There
 * is no timer while no client is connected. */

#include "agent/http/http-server.h"

#include "agent/http/client-limits.h"
#include "agent/http/handlers.h"
#include "agent/http/http-connection.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/dump.h"
#include "common/event-source.h"
#include "common/file-watch.h"
#include "common/log.h"
#include "common/memory-trim-timer.h"
#include "common/mhd-loop.h"

#include <fcntl.h>
#include <pwd.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#define REQUEST_TIMEOUT_USEC (10 * USEC_PER_SEC)

enum {
        BACKLOG = 64,
        ACCEPT_MAX = 16, /* per turn */
        HTTP_CONNECTION_MEMORY = 32 * 1024,
};

struct HttpServer {
        sd_event *event;
        const HttpServerHandlers *handlers;
        void *userdata;
        uint64_t request_timeout_usec;

        char *socket_path;
        dev_t socket_device; /* identity of the socket, so that no other one is removed */
        ino_t socket_inode;

        sd_event_source *listen_source;      /* a client connects; disabled while there are too
                                              * many */
        sd_event_source *accept_retry_timer; /* after descriptors were exhausted */
        int spare_fd; /* closed to accept and refuse a client when descriptors are exhausted */
        MhdLoop mhd;

        bool has_api_user; /* mainstay-api's */
        bool is_alone;
        uid_t api_uid;
        gid_t api_gid;

        ClientLimits clients;
        HttpAccess *accesses; /* requests that wait for a decision */
        ResponseStreams streams;
        LogProcesses log_processes;
        FileWatch *user_watch;
};

const HttpServerHandlers *http_handlers_of(const HttpServer *server) {
        return server->handlers;
}

void *http_userdata_of(const HttpServer *server) {
        return server->userdata;
}

sd_event *http_event_of(const HttpServer *server) {
        return server->event;
}

ResponseStreams *http_streams_of(HttpServer *server) {
        return &server->streams;
}

LogProcesses *http_log_processes_of(HttpServer *server) {
        return &server->log_processes;
}

void http_server_schedule_run(HttpServer *server) {
        mhd_loop_schedule_run(&server->mhd);
}

HttpAccess **http_accesses_of(HttpServer *server) {
        return &server->accesses;
}

bool http_is_alone(const HttpServer *server) {
        return server->is_alone;
}

static uid_t uid_of_peer(int fd) {
        struct ucred peer = { .uid = (uid_t) -1 };
        socklen_t size = sizeof(peer);

        (void) getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size);
        return peer.uid;
}

static void serve_http_client(HttpServer *server, int fd_consume) {
        static const struct sockaddr_un address = { .sun_family = AF_UNIX };

        (void) mhd_loop_add_connection(&server->mhd, fd_consume, (const struct sockaddr *) &address,
                                       sizeof(address.sun_family));
}

static void serve_waiting_clients(HttpServer *server) {
        for (int fd; (fd = client_limits_next(&server->clients)) >= 0;)
                serve_http_client(server, fd);
}

static void continue_http_server(void *userdata) {
        HttpServer *server = userdata;

        serve_waiting_clients(server);
        response_streams_resume_yielding(&server->streams);
}

/* ---- connections ---- */

static void on_mhd_connection(void *userdata, struct MHD_Connection *http, void **context,
                              enum MHD_ConnectionNotificationCode code) {
        HttpServer *server = userdata;
        int fd = MHD_get_connection_info(http, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;

        if (code == MHD_CONNECTION_NOTIFY_STARTED) {
                client_limits_add(&server->clients, uid_of_peer(fd));
                *context = http_connection_new(server->event, fd, server->request_timeout_usec);
                return;
        }
        client_limits_remove(&server->clients, uid_of_peer(fd));
        http_connection_free(*context);
        *context = NULL;
        if (server->clients.n_waiting > 0)
                http_server_schedule_run(server);
        (void) sd_event_source_set_enabled(server->listen_source, SD_EVENT_ON);
}

static void on_mhd_request_completed(void *userdata, struct MHD_Connection *http, void **request,
                                     enum MHD_RequestTerminationCode code) {
        HttpConnection *connection = http_connection_of(http);

        if (!connection)
                return;
        http_connection_set_access_take(connection, NULL, NULL);
        http_connection_set_deadline(connection);
        memory_trim_timer_restart(); /* a list of pods leaves holes in the heap */
}

/* ---- accepting clients ---- */

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

static bool is_api_user(const HttpServer *server, uid_t uid) {
        return server->has_api_user && uid == server->api_uid;
}

bool http_is_api_peer(const HttpServer *server, struct MHD_Connection *http) {
        return is_api_user(server, uid_of_peer(http_connection_fd(http_connection_of(http))));
}

bool http_require_api_peer(const HttpServer *server, struct MHD_Connection *http,
                           enum MHD_Result *ret) {
        return http_is_api_peer(server, http) || http_require_root(http, ret);
}

bool http_require_writer(const HttpServer *server, struct MHD_Connection *http,
                         enum MHD_Result *ret) {
        if (server->is_alone && http_is_api_peer(server, http))
                return true;
        return http_require_root(http, ret);
}

/* The mode of the socket already excludes other users; this check is effective even if the mode was
 * changed. */
static bool is_peer_allowed(const HttpServer *server, int fd) {
        struct ucred peer;
        socklen_t size = sizeof(peer);
        struct stat st;

        if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) < 0)
                return false;
        if (peer.uid == 0 || peer.uid == geteuid() || is_api_user(server, peer.uid))
                return true;
        if (lstat(server->socket_path, &st) < 0)
                return false;
        return peer.gid == st.st_gid || is_peer_in_group(fd, st.st_gid);
}

static void refuse_peer(int fd, const char *status, const char *text) {
        char answer[256];
        int n = snprintf(answer, sizeof(answer),
                         "HTTP/1.1 %s\r\nContent-Type: text/plain\r\n"
                         "Content-Length: %zu\r\nConnection: close\r\n\r\n%s",
                         status, strlen(text), text);

        (void) send(fd, answer, (size_t) n, MSG_NOSIGNAL | MSG_DONTWAIT);
        close_fd(fd);
}

static int open_spare_descriptor(void) {
        return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static int on_accept_retry_timer(sd_event_source *source, uint64_t usec, void *userdata) {
        HttpServer *server = userdata;

        if (server->spare_fd < 0)
                server->spare_fd = open_spare_descriptor();
        (void) sd_event_source_set_enabled(server->listen_source, SD_EVENT_ON);
        return 0;
}

/* Descriptors or memory are exhausted. The client stays in the queue; accepting again at once would
 * only consume CPU time. */
static void pause_accepting_clients(HttpServer *server) {
        (void) sd_event_source_set_enabled(server->listen_source, SD_EVENT_OFF);
        (void) event_timer_arm(server->accept_retry_timer, USEC_PER_SEC);
}

/* Sends the client the reason, so that it does not wait until descriptors are available. */
static int refuse_without_descriptors(HttpServer *server, int listen_fd) {
        int fd, r;

        if (server->spare_fd < 0)
                return -EMFILE;
        server->spare_fd = close_fd(server->spare_fd);
        fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        r = fd < 0 ? -errno : 0;
        if (fd >= 0)
                refuse_peer(fd, "503 Service Unavailable", "the agent is out of descriptors\n");
        server->spare_fd = open_spare_descriptor();
        return r;
}

static int accept_http_client(HttpServer *server, int listen_fd) {
        int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        uid_t uid;

        if (fd < 0 && (errno == EMFILE || errno == ENFILE))
                return refuse_without_descriptors(server, listen_fd);
        if (fd < 0)
                return -errno;
        uid = uid_of_peer(fd);
        if (!is_peer_allowed(server, fd))
                refuse_peer(fd, "403 Forbidden",
                            "only root and the group of the socket may connect\n");
        else if (client_limits_allow(&server->clients, uid))
                serve_http_client(server, fd);
        else if (!client_limits_wait_take(&server->clients, uid, fd))
                refuse_peer(fd, "503 Service Unavailable",
                            "too many connections of this user to the agent\n");
        return 0;
}

static int on_http_listen_socket(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        HttpServer *server = userdata;
        int r = 0;

        for (unsigned i = 0; i < ACCEPT_MAX && r >= 0 && server->clients.n_served < CLIENTS_MAX;
             i++)
                r = accept_http_client(server, fd);
        if (r < 0 && r != -EAGAIN && r != -ECONNABORTED && r != -EINTR)
                pause_accepting_clients(server);
        if (server->clients.n_served >= CLIENTS_MAX)
                (void) sd_event_source_set_enabled(server->listen_source, SD_EVENT_OFF);
        mhd_loop_run(&server->mhd);
        return 0;
}

/* The run directory belongs to the agent: the group of mainstay-api only gets search permission. */
static int let_group_reach_socket(const HttpServer *server) {
        cleanup_free char *directory =
                strndup(server->socket_path,
                        (size_t) (strrchr(server->socket_path, '/') - server->socket_path));

        if (!directory)
                return -ENOMEM;
        return chown(directory, (uid_t) -1, server->api_gid) < 0 || chmod(directory, 0710) < 0
                       ? -errno
                       : 0;
}

/* Without the user of mainstay-api the socket keeps the agent's group. */
static int set_socket_group(const HttpServer *server, const char *path) {
        if (!server->has_api_user)
                return 0;
        return chown(path, (uid_t) -1, server->api_gid) < 0 ? -errno
                                                            : let_group_reach_socket(server);
}

/* 1: the user exists, and has changed; 0: it has not changed; -ENOENT: there is none. */
static int find_api_user(HttpServer *server) {
        const struct passwd *user = getpwnam("mainstay-api");

        if (!user || user->pw_uid == 0)
                return -ENOENT;
        if (server->has_api_user && server->api_uid == user->pw_uid &&
            server->api_gid == user->pw_gid)
                return 0;
        server->has_api_user = true;
        server->api_uid = user->pw_uid;
        server->api_gid = user->pw_gid;
        server->clients.service_uid = user->pw_uid;
        return 1;
}

bool http_server_admit_api_user(void *userdata) {
        HttpServer *server = userdata;
        int r;

        if (geteuid() != 0)
                return true; /* mainstay-api runs as the agent's user */
        r = find_api_user(server);
        if (r > 0) {
                r = set_socket_group(server, server->socket_path);
                if (r < 0)
                        (void) log_warning_errno(r, "Cannot let the user 'mainstay-api' use %s",
                                                 server->socket_path);
        }
        return r >= 0;
}

static void on_users_changed(void *userdata) {
        (void) http_server_admit_api_user(userdata);
}

/* systemd may start mainstay-api, in which case nothing else looks up the user. */
static int watch_users(HttpServer *server) {
        static const char *const files[] = { "/etc/passwd" };
        int r = file_watch_new(server->event, on_users_changed, server, &server->user_watch);

        if (r < 0)
                return r;
        (void) file_watch_set(server->user_watch, files, N_ELEMENTS(files));
        return 0;
}

/* Binds to a temporary name and renames it over the path. */
static int open_http_socket(HttpServer *server, int *ret, Error *reterr) {
        cleanup_close int fd = -EBADF;
        struct sockaddr_un address = { .sun_family = AF_UNIX };
        struct stat st;
        int n;

        n = snprintf(address.sun_path, sizeof(address.sun_path), "%s.new", server->socket_path);
        if (n < 0 || (size_t) n >= sizeof(address.sun_path))
                return error_setf(reterr, ENAMETOOLONG,
                                  "the path is too long for a socket: at most %zu bytes",
                                  sizeof(address.sun_path) - sizeof(".new"));
        fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0)
                return -errno;
        if (unlink(address.sun_path) < 0 && errno != ENOENT)
                return -errno;
        /* The mode of a socket file is that of the socket's inode at the time of bind(2). */
        if (fchmod(fd, 0660) < 0 || bind(fd, (struct sockaddr *) &address, sizeof(address)) < 0 ||
            chmod(address.sun_path, 0660) < 0 || set_socket_group(server, address.sun_path) < 0 ||
            listen(fd, BACKLOG) < 0 || lstat(address.sun_path, &st) < 0 ||
            rename(address.sun_path, server->socket_path) < 0) {
                int r = -errno;
                (void) unlink(address.sun_path);
                return r;
        }
        server->socket_device = st.st_dev;
        server->socket_inode = st.st_ino;
        *ret = TAKE_FD(fd);
        return 0;
}

static struct MHD_Daemon *start_http_daemon(HttpServer *server) {
        return MHD_start_daemon(MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET |
                                        MHD_ALLOW_SUSPEND_RESUME | MHD_ALLOW_UPGRADE,
                                0, NULL, NULL, http_route_request, server,
                                MHD_OPTION_NOTIFY_CONNECTION, on_mhd_connection, server,
                                MHD_OPTION_NOTIFY_COMPLETED, on_mhd_request_completed, server,
                                MHD_OPTION_UNESCAPE_CALLBACK, mhd_unescape_path, server,
                                MHD_OPTION_CONNECTION_LIMIT, (unsigned) CLIENTS_MAX,
                                MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t) HTTP_CONNECTION_MEMORY,
                                MHD_OPTION_CONNECTION_TIMEOUT, 0U, MHD_OPTION_END);
}

static int add_http_event_sources(HttpServer *server, int listen_fd_consume) {
        cleanup_close int listen_fd = listen_fd_consume;
        int r;

        r = event_add_disabled_timer(server->event, &server->accept_retry_timer, CLOCK_MONOTONIC, 0,
                                     on_accept_retry_timer, server);
        if (r < 0)
                return r;
        r = sd_event_add_io(server->event, &server->listen_source, listen_fd, EPOLLIN,
                            on_http_listen_socket, server);
        if (r < 0)
                return r;
        (void) sd_event_source_set_io_fd_own(server->listen_source, true);
        TAKE_FD(listen_fd);
        return sd_event_source_set_priority(server->listen_source, HTTP_PRIORITY);
}

static void schedule_run_of_streams(void *userdata) {
        http_server_schedule_run(userdata);
}

int http_server_new(const HttpServerConfig *config, HttpServer **ret, Error *reterr) {
        cleanup_with(http_server_freep) HttpServer *server = calloc(1, sizeof(*server));
        int fd = -EBADF, r;

        if (!server)
                return -ENOMEM;
        server->event = sd_event_ref(config->event);
        server->spare_fd = open_spare_descriptor();
        server->streams = (ResponseStreams){ .event = config->event,
                                             .schedule_run = schedule_run_of_streams,
                                             .userdata = server };
        server->log_processes.event = config->event;
        server->handlers = config->handlers;
        server->is_alone = config->is_alone;
        server->userdata = config->userdata;
        server->request_timeout_usec =
                config->request_timeout_usec ? config->request_timeout_usec : REQUEST_TIMEOUT_USEC;
        server->socket_path = strdup(config->socket_path);
        if (!server->socket_path)
                return -ENOMEM;

        server->mhd.on_deferred_run = continue_http_server;
        server->mhd.userdata = server;
        server->mhd.priority = HTTP_PRIORITY;
        r = mhd_loop_start(&server->mhd, server->event, start_http_daemon(server));
        if (r < 0)
                return error_prefixf(reterr, r, "cannot start libmicrohttpd");
        if (geteuid() == 0)
                (void) find_api_user(server);
        r = open_http_socket(server, &fd, reterr);
        if (r < 0)
                return error_prefixf(reterr, r, "%s", config->socket_path);
        r = add_http_event_sources(server, fd);
        if (r < 0)
                return error_prefixf(reterr, r, "%s", config->socket_path);
        r = watch_users(server);
        if (r < 0)
                return error_prefixf(reterr, r, "cannot watch /etc/passwd");
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
        http_abort_accesses(server);
        if (server->mhd.mhd)
                response_streams_abort_all(&server->streams);
        mhd_loop_stop(&server->mhd);
        client_limits_done(&server->clients);
        file_watch_free(server->user_watch);
        log_processes_done(&server->log_processes);
        if (server->socket_path)
                remove_http_socket(server);
        sd_event_source_disable_unref(server->listen_source);
        sd_event_source_disable_unref(server->accept_retry_timer);
        sd_event_unref(server->event);
        close_fd(server->spare_fd);
        free(server->socket_path);
        free(server);
        return NULL;
}

void http_server_dump(const HttpServer *server, FILE *out) {
        dump_section(out, "HTTP server");
        dump_line(out, 1, "socket: %s", server->socket_path);
        dump_line(out, 1, "connections: %zu of %u, waiting: %zu", server->clients.n_served,
                  CLIENTS_MAX, server->clients.n_waiting);
        dump_line(out, 1, "unbounded streams: %u of %u", server->streams.n_unbounded,
                  UNBOUNDED_STREAMS_MAX + UNBOUNDED_STREAMS_OF_ROOT);
        dump_line(out, 1, "log processes: %u of %d", server->log_processes.n, LOG_PROCESSES_MAX);
        dump_timer(out, 1, "clients are accepted again", server->accept_retry_timer);
}
