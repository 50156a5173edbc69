/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/http/healthz-server.h"

#include "agent/http/http-connection.h"
#include "agent/http/http-reply.h"
#include "agent/http/http-server.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/mhd-loop.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define HEALTHZ_REQUEST_USEC (10 * USEC_PER_SEC) /* for a whole request and its reply */

enum {
        HEALTHZ_BACKLOG = 16,
        HEALTHZ_CONNECTIONS_MAX = 16,
        HEALTHZ_IDLE_SEC = 10,
        HEALTHZ_MEMORY = 8 * 1024, /* of a connection */
};

struct HealthzServer {
        sd_event *event; /* borrowed */
        MhdLoop mhd;
};

/* "/healthz/ping", "/healthz/syncloop": the kubelet's single checks. */
static bool is_healthz_path(const char *path) {
        static const char prefix[] = "/healthz";
        size_t n = strlen(prefix);

        return strncmp(path, prefix, n) == 0 && (!path[n] || path[n] == '/');
}

static enum MHD_Result on_healthz_request(void *userdata, struct MHD_Connection *http,
                                          const char *path, const char *method, const char *version,
                                          const char *data, size_t *length, void **context) {
        bool is_read = streq(method, MHD_HTTP_METHOD_GET) || streq(method, MHD_HTTP_METHOD_HEAD);

        if (!is_read)
                return http_reply_error(http, MHD_HTTP_METHOD_NOT_ALLOWED, "only GET is served");
        if (!is_healthz_path(path))
                return http_reply_error(http, MHD_HTTP_NOT_FOUND, "only /healthz is served");
        return http_reply_text(http, MHD_HTTP_OK, "text/plain", "ok");
}

/* At its connection limit, libmicrohttpd stops accepting clients until it runs again. If no
 * connection is left, nothing but this call makes it run. */
static void on_healthz_connection(void *userdata, struct MHD_Connection *http, void **context,
                                  enum MHD_ConnectionNotificationCode code) {
        HealthzServer *server = userdata;
        int fd = MHD_get_connection_info(http, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;

        if (code == MHD_CONNECTION_NOTIFY_STARTED) {
                *context = http_connection_new(server->event, fd, HEALTHZ_REQUEST_USEC);
                return;
        }
        http_connection_free(*context);
        *context = NULL;
        mhd_loop_schedule_run(&server->mhd);
}

static void on_healthz_completed(void *userdata, struct MHD_Connection *http, void **request,
                                 enum MHD_RequestTerminationCode code) {
        HttpConnection *connection = http_connection_of(http);

        if (connection)
                http_connection_set_deadline(connection);
}

static socklen_t fill_socket_address(const char *text, uint16_t port,
                                     struct sockaddr_storage *ret) {
        struct sockaddr_in *v4 = (struct sockaddr_in *) ret;
        struct sockaddr_in6 *v6 = (struct sockaddr_in6 *) ret;

        if (inet_pton(AF_INET, text, &v4->sin_addr) == 1) {
                v4->sin_family = AF_INET;
                v4->sin_port = htons(port);
                return sizeof(*v4);
        }
        if (inet_pton(AF_INET6, text, &v6->sin6_addr) == 1) {
                v6->sin6_family = AF_INET6;
                v6->sin6_port = htons(port);
                return sizeof(*v6);
        }
        return 0;
}

/* Returns a descriptor or -errno. */
static int open_healthz_socket(const char *text, uint16_t port) {
        struct sockaddr_storage address = { 0 };
        socklen_t length = fill_socket_address(text, port, &address);
        cleanup_close int fd = -EBADF;

        if (length == 0)
                return -EINVAL;
        fd = socket(address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0)
                return -errno;
        /* Connections of the previous agent may not have timed out yet. */
        if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){ 1 }, sizeof(int)) < 0 ||
            bind(fd, (struct sockaddr *) &address, length) < 0 || listen(fd, HEALTHZ_BACKLOG) < 0)
                return -errno;
        return TAKE_FD(fd);
}

/* libmicrohttpd's timeout restarts with every byte; it ends connections that have no deadline
 * because memory was exhausted. */
static struct MHD_Daemon *start_healthz_daemon(HealthzServer *server, int fd) {
        return MHD_start_daemon(
                MHD_USE_EPOLL, 0, NULL, NULL, on_healthz_request, server, MHD_OPTION_LISTEN_SOCKET,
                fd, MHD_OPTION_NOTIFY_CONNECTION, on_healthz_connection, server,
                MHD_OPTION_NOTIFY_COMPLETED, on_healthz_completed, server,
                MHD_OPTION_CONNECTION_LIMIT, (unsigned) HEALTHZ_CONNECTIONS_MAX,
                MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t) HEALTHZ_MEMORY,
                MHD_OPTION_CONNECTION_TIMEOUT, (unsigned) HEALTHZ_IDLE_SEC, MHD_OPTION_END);
}

static int healthz_server_new(sd_event *event, const char *address, uint16_t port,
                              HealthzServer **ret, Error *reterr) {
        cleanup_with(healthz_server_freep) HealthzServer *server = calloc(1, sizeof(*server));
        int fd, r;

        if (!server)
                return -ENOMEM;
        fd = open_healthz_socket(address, port);
        if (fd < 0)
                return error_prefixf(reterr, fd, "cannot serve /healthz at %s port %u", address,
                                     port);
        server->event = event;
        server->mhd.priority = HTTP_PRIORITY;
        r = mhd_loop_start(&server->mhd, event, start_healthz_daemon(server, fd));
        if (!server->mhd.mhd)
                (void) close(fd);
        if (r < 0)
                return error_prefixf(reterr, r, "cannot start libmicrohttpd for /healthz");
        *ret = TAKE_PTR(server);
        return 0;
}

HealthzServer *healthz_server_start(sd_event *event, const Config *config) {
        const OptionalInt *port = &config->healthz_port;
        HealthzServer *server = NULL;
        cleanup_error Error error = ERROR_NULL;
        int r;

        if (!port->is_set || port->value == 0)
                return NULL;
        r = healthz_server_new(event, config->healthz_bind_address, (uint16_t) port->value, &server,
                               &error);
        if (r < 0)
                log_error_message(&error, r);
        return server;
}

HealthzServer *healthz_server_free(HealthzServer *server) {
        if (!server)
                return NULL;
        mhd_loop_stop(&server->mhd); /* closes the socket */
        free(server);
        return NULL;
}
