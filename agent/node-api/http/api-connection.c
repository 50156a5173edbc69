/* SPDX-License-Identifier: Apache-2.0 */
/* One connection of a client: its TLS and HTTP ends, its deadline, and its suspended request. */

#include "agent/node-api/process/node-api-private.h"
#include "common/cleanup.h"
#include "common/clock.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>

static void free_ended_connection(ApiConnection *connection) {
        if (!connection->tls && connection->http_fd < 0)
                api_connection_free(connection);
}

/* libmicrohttpd detects the end of its socket, and ends the connection as well. */
static void on_connection_tls_closed(TlsStream *stream, void *userdata) {
        ApiConnection *connection = userdata;

        connection->tls = tls_stream_free(stream);
        free_ended_connection(connection);
}

static void on_connection_tls_open(TlsStream *stream, int fd, void *userdata) {
        static const struct sockaddr_un address = { .sun_family = AF_UNIX };
        ApiConnection *connection = userdata;

        connection->http_fd = fd;
        if (MHD_add_connection(connection->server->http.mhd, fd, (const struct sockaddr *) &address,
                               sizeof(address.sun_family)) != MHD_YES)
                connection->http_fd = -EBADF; /* the socket was closed, which the TLS side will
                                               * notice */
        api_http_schedule_run(connection->server);
}

static const TlsStreamHandlers connection_tls_handlers = { on_connection_tls_open,
                                                           on_connection_tls_closed };

void api_connection_new(NodeApi *server, int fd_consume, const struct in6_addr *address) {
        ApiConnection *connection = calloc(1, sizeof(*connection));
        int r;

        if (!connection) {
                close_fd(fd_consume);
                return;
        }
        connection->server = server;
        connection->address = *address;
        connection->http_fd = -EBADF;
        connection->next = server->connections;
        if (connection->next)
                connection->next->previous = connection;
        server->connections = connection;
        server->n_connections++;
        r = tls_stream_new(server->event, fd_consume, server->credentials, &connection_tls_handlers,
                           connection, &connection->tls);
        if (r < 0)
                api_connection_free(connection);
}

void api_connection_free(ApiConnection *connection) {
        NodeApi *server = connection->server;

        if (connection->previous)
                connection->previous->next = connection->next;
        else
                server->connections = connection->next;
        if (connection->next)
                connection->next->previous = connection->previous;
        server->n_connections--;
        tls_stream_free(connection->tls);
        sd_event_source_disable_unref(connection->deadline);
        sd_event_source_disable_unref(connection->hangup);
        free(connection);
        node_api_connection_ended(server);
}

ApiConnection *api_connection_find(const NodeApi *server, int http_fd) {
        for (ApiConnection *connection = server->connections; connection;
             connection = connection->next)
                if (connection->http_fd == http_fd)
                        return connection;
        return NULL;
}

void api_connection_http_ended(ApiConnection *connection) {
        api_upgrade_free(connection->upgrade); /* the client did not wait for it */
        connection->deadline = sd_event_source_disable_unref(connection->deadline);
        connection->hangup = sd_event_source_disable_unref(connection->hangup);
        connection->http_fd = -EBADF;
        free_ended_connection(connection);
}

ApiConnection *api_connection_of(struct MHD_Connection *http) {
        return MHD_get_connection_info(http, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
}

static int on_connection_deadline(sd_event_source *source, uint64_t usec, void *userdata) {
        ApiConnection *connection = userdata;

        (void) shutdown(connection->http_fd, SHUT_RDWR);
        return 0;
}

void api_connection_set_deadline(ApiConnection *connection, uint64_t usec) {
        int r = connection->deadline
                        ? sd_event_source_set_time_relative(connection->deadline, usec)
                        : sd_event_add_time_relative(connection->server->event,
                                                     &connection->deadline, CLOCK_MONOTONIC, usec,
                                                     0, on_connection_deadline, connection);

        if (r >= 0)
                (void) sd_event_source_set_enabled(connection->deadline, SD_EVENT_ONESHOT);
}

void api_connection_clear_deadline(ApiConnection *connection) {
        if (connection->deadline)
                (void) sd_event_source_set_enabled(connection->deadline, SD_EVENT_OFF);
}

void api_connection_resume(ApiConnection *connection) {
        struct MHD_Connection *http = TAKE_PTR(connection->suspended);

        if (!http)
                return;
        connection->hangup = sd_event_source_disable_unref(connection->hangup);
        MHD_resume_connection(http);
        api_http_schedule_run(connection->server);
}

/* libmicrohttpd requests more after it has sent the previous part. */
ssize_t api_connection_end_body(ApiConnection *connection) {
        if (connection->tls)
                tls_stream_end_record(connection->tls);
        return MHD_CONTENT_READER_END_OF_STREAM;
}

static int on_connection_hangup(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        ApiConnection *connection = userdata;

        connection->is_gone = true;
        api_connection_resume(connection);
        return 0;
}

void api_connection_suspend(ApiConnection *connection, struct MHD_Connection *http) {
        connection->suspended = http;
        MHD_suspend_connection(http);
        if (sd_event_add_io(connection->server->event, &connection->hangup, connection->http_fd,
                            EPOLLRDHUP, on_connection_hangup, connection) >= 0)
                return;
        connection->is_gone = true; /* otherwise it might never end */
        api_connection_resume(connection);
}
