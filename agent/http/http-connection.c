/* SPDX-License-Identifier: Apache-2.0 */

/* Clients of the HTTP server and their time limits. libmicrohttpd's own idle timeout is not used,
 * because it starts again with every byte. */

#include "agent/http/http-connection.h"

#include "common/cleanup.h"
#include "common/event-source.h"

#include <stdlib.h>
#include <sys/socket.h>

struct HttpConnection {
        int fd;
        uint64_t timeout_usec;
        sd_event_source *deadline;
        void *upgrade;
        void (*free_upgrade)(void *upgrade);
        HttpAccess *access;
        void (*free_access)(HttpAccess *access);
};

static int on_http_connection_deadline(sd_event_source *source, uint64_t usec, void *userdata) {
        HttpConnection *connection = userdata;

        (void) shutdown(connection->fd, SHUT_RDWR);
        return 0;
}

HttpConnection *http_connection_new(sd_event *event, int fd, uint64_t timeout_usec) {
        HttpConnection *connection = calloc(1, sizeof(*connection));

        if (!connection)
                return NULL;
        connection->fd = fd;
        connection->timeout_usec = timeout_usec;
        /* The loop may have been busy in the meantime, so data that the client has sent is handled
         * first. */
        if (sd_event_add_time_relative(event, &connection->deadline, CLOCK_MONOTONIC, timeout_usec,
                                       0, on_http_connection_deadline, connection) < 0 ||
            sd_event_source_set_priority(connection->deadline, HTTP_PRIORITY + 1) < 0)
                return http_connection_free(connection);
        return connection;
}

HttpConnection *http_connection_free(HttpConnection *connection) {
        if (!connection)
                return NULL;
        sd_event_source_disable_unref(connection->deadline);
        http_connection_set_upgrade_take(connection, NULL, NULL);
        http_connection_set_access_take(connection, NULL, NULL);
        free(connection);
        return NULL;
}

HttpConnection *http_connection_of(struct MHD_Connection *http) {
        return MHD_get_connection_info(http, MHD_CONNECTION_INFO_SOCKET_CONTEXT)->socket_context;
}

int http_connection_fd(const HttpConnection *connection) {
        return connection->fd;
}

void http_connection_set_deadline(HttpConnection *connection) {
        (void) event_timer_arm(connection->deadline, connection->timeout_usec);
}

void http_connection_clear_deadline(HttpConnection *connection) {
        (void) sd_event_source_set_enabled(connection->deadline, SD_EVENT_OFF);
}

void http_connection_set_upgrade_take(HttpConnection *connection, void *upgrade,
                                      void (*free_upgrade)(void *upgrade)) {
        if (connection->upgrade)
                connection->free_upgrade(connection->upgrade);
        connection->upgrade = upgrade;
        connection->free_upgrade = free_upgrade;
}

void *http_connection_take_upgrade(HttpConnection *connection) {
        return TAKE_PTR(connection->upgrade);
}

HttpAccess *http_connection_access(const HttpConnection *connection) {
        return connection->access;
}

void http_connection_set_access_take(HttpConnection *connection, HttpAccess *access,
                                     void (*free_access)(HttpAccess *access)) {
        if (connection->access)
                connection->free_access(connection->access);
        connection->access = access;
        connection->free_access = free_access;
}
