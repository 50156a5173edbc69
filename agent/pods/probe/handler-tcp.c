/* SPDX-License-Identifier: Apache-2.0 */
/* The tcpSocket handler: opens a connection and closes it. */

#include "agent/pods/probe/handler-run-private.h"
#include "common/cleanup.h"
#include "common/text.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <inttypes.h>
#include <sys/epoll.h>
#include <sys/socket.h>

typedef union SocketAddress {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
} SocketAddress;

/* Returns the length; 0 if the host is a name. */
static socklen_t parse_socket_address(const char *host, int64_t port, SocketAddress *ret) {
        uint16_t number = htons((uint16_t) port);

        *ret = (SocketAddress){ 0 };
        if (inet_pton(AF_INET, host, &ret->v4.sin_addr) == 1) {
                ret->v4.sin_family = AF_INET;
                ret->v4.sin_port = number;
                return sizeof(ret->v4);
        }
        if (inet_pton(AF_INET6, host, &ret->v6.sin6_addr) == 1) {
                ret->v6.sin6_family = AF_INET6;
                ret->v6.sin6_port = number;
                return sizeof(ret->v6);
        }
        return 0;
}

enum {
        SYSTEM_ERROR_SIZE = 64
};

/* In Go's wording, which the kubelet shows. Returns the buffer. */
static const char *describe_system_error(int code, char buffer[SYSTEM_ERROR_SIZE]) {
        (void) snprintf(buffer, SYSTEM_ERROR_SIZE, "%s", strerror(code));
        buffer[0] = (char) tolower((unsigned char) buffer[0]);
        return buffer;
}

static int on_tcp_connected(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        HandlerRun *run = userdata;
        char text[SYSTEM_ERROR_SIZE];
        int code = 0;
        socklen_t length = sizeof(code);

        if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &code, &length) < 0)
                code = errno;
        if (code == 0)
                handler_run_finish(run, HANDLER_SUCCEEDED, "%s", "");
        else
                handler_run_finish(run, HANDLER_FAILED, "dial tcp %s: connect: %s", run->url,
                                   describe_system_error(code, text));
        return 0;
}

static void connect_to_address(HandlerRun *run, const SocketAddress *address, socklen_t length) {
        char text[SYSTEM_ERROR_SIZE];
        int r;

        run->fd = socket(address->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (run->fd < 0) {
                handler_run_finish_deferred(run, HANDLER_ERROR, "cannot make a socket: %s",
                                            strerror(errno));
                return;
        }
        if (connect(run->fd, &address->any, length) < 0 && errno != EINPROGRESS) {
                handler_run_finish_deferred(run, HANDLER_FAILED, "dial tcp %s: connect: %s",
                                            run->url, describe_system_error(errno, text));
                return;
        }
        r = sd_event_add_io(run->target.event, &run->connection, run->fd, EPOLLOUT,
                            on_tcp_connected, run);
        if (r < 0)
                handler_run_finish_deferred(run, HANDLER_ERROR, "cannot watch a socket: %s",
                                            strerror(-r));
}

static void on_tcp_host_reached(const HttpClientResponse *response, const char *error,
                                void *userdata) {
        HandlerRun *run = userdata;

        run->request = NULL;
        if (response)
                handler_run_finish(run, HANDLER_SUCCEEDED, "%s", "");
        else
                handler_run_finish(run, HANDLER_FAILED, "dial tcp %s: %s", run->url, error);
}

/* libcurl resolves names without blocking. */
static void connect_to_host_name(HandlerRun *run, const char *host, int64_t port) {
        cleanup_free char *url = format_handler_url("http", host, port, "/");
        cleanup_error Error error = ERROR_NULL;
        HttpClient *http = handler_run_http_client(run);
        int r;

        if (!http)
                return;
        r = url ? http_client_start(http, &(HttpClientSpec){ .url = url, .is_connection = true },
                                    on_tcp_host_reached, run, &run->request, &error)
                : -ENOMEM;
        if (r < 0)
                handler_run_finish_deferred(run, HANDLER_ERROR, "%s", error_message(&error, r));
}

void handler_begin_tcp(HandlerRun *run) {
        const TcpSocketAction *tcp = run->spec.handler->tcp_socket;
        const char *host = tcp->host ? tcp->host : run->address;
        int64_t port = handler_run_find_port(run, &tcp->port);
        SocketAddress address;
        socklen_t length = parse_socket_address(host, port, &address);

        if (port == 0)
                return;
        run->url = text_format(strchr(host, ':') ? "[%s]:%" PRId64 : "%s:%" PRId64, host, port);
        if (!run->url)
                handler_run_finish_deferred(run, HANDLER_ERROR, "out of memory");
        else if (length > 0)
                connect_to_address(run, &address, length);
        else
                connect_to_host_name(run, host, port);
}
