/* SPDX-License-Identifier: Apache-2.0 */
/* A connection that is made and closed. */

#include "agent/supervise/action-internal.h"
#include "common/cleanup.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <sys/epoll.h>
#include <sys/socket.h>

typedef union Address {
        struct sockaddr any;
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
} Address;

/* The length, or 0 where the host is a name. */
static socklen_t parse_address(const char *host, int64_t port, Address *ret) {
        uint16_t number = htons((uint16_t) port);

        *ret = (Address){ 0 };
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

static int on_connected(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        Action *action = userdata;
        int code = 0;
        socklen_t length = sizeof(code);

        if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &code, &length) < 0)
                code = errno;
        if (code == 0)
                action_finish(action, ACTION_SUCCEEDED, "%s", "");
        else
                action_finish(action, ACTION_FAILED, "dial tcp %s: connect: %s", action->url,
                              strerror(code));
        return 0;
}

static void connect_to(Action *action, const Address *address, socklen_t length) {
        int r;

        action->fd = socket(address->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (action->fd < 0) {
                action_finish_soon(action, ACTION_BROKEN, "cannot make a socket: %s",
                                   strerror(errno));
                return;
        }
        if (connect(action->fd, &address->any, length) < 0 && errno != EINPROGRESS) {
                action_finish_soon(action, ACTION_FAILED, "dial tcp %s: connect: %s", action->url,
                                   strerror(errno));
                return;
        }
        r = sd_event_add_io(action->target.event, &action->connection, action->fd, EPOLLOUT,
                            on_connected, action);
        if (r < 0)
                action_finish_soon(action, ACTION_BROKEN, "cannot watch a socket: %s",
                                   strerror(-r));
}

static void on_reached(const HttpResponse *response, const char *error, void *userdata) {
        Action *action = userdata;

        action->request = NULL;
        if (response)
                action_finish(action, ACTION_SUCCEEDED, "%s", "");
        else
                action_finish(action, ACTION_FAILED, "dial tcp %s: %s", action->url, error);
}

/* A name is looked up by libcurl, which does not wait for the answer. */
static void connect_by_name(Action *action, const char *host, int64_t port) {
        cleanup_free char *url = action_url("http", host, port, "/");
        cleanup_error Error error = ERROR_NULL;
        Http *http = action_http(action);
        int r;

        if (!http)
                return;
        r = url ? http_begin(http, &(HttpSpec){ .url = url, .is_connection = true }, on_reached,
                             action, &action->request, &error)
                : -ENOMEM;
        if (r < 0)
                action_finish_soon(action, ACTION_BROKEN, "%s", error_message(&error, r));
}

void action_begin_tcp(Action *action) {
        const TcpSocketAction *tcp = action->spec.handler->tcp_socket;
        const char *host = tcp->host ? tcp->host : action->address;
        int64_t port = action_port(action, &tcp->port);
        Address address;
        socklen_t length = parse_address(host, port, &address);

        if (asprintf(&action->url, strchr(host, ':') ? "[%s]:%" PRId64 : "%s:%" PRId64, host,
                     port) < 0)
                action->url = NULL;
        if (!action->url)
                action_finish_soon(action, ACTION_BROKEN, "out of memory");
        else if (length > 0)
                connect_to(action, &address, length);
        else
                connect_by_name(action, host, port);
}
