/* SPDX-License-Identifier: Apache-2.0 */

/* libmicrohttpd without threads and without TLS: its connections are socket pairs, whose other ends
 * belong to TlsStream. */

#include "agent/node-api/node-api-private.h"
#include "common/cleanup.h"
#include "common/clock.h"

#include <sys/epoll.h>

#define REQUEST_USEC (10 * USEC_PER_SEC) /* for the first request */
#define IDLE_USEC    (90 * USEC_PER_SEC) /* until the next one, as the kubelet has it */

enum {
        HTTP_CONNECTION_MEMORY = 32 * 1024,
};

void api_http_schedule_run(NodeApi *server) {
        (void) sd_event_source_set_enabled(server->deferred_run, SD_EVENT_ONESHOT);
}

static void run_api_http(NodeApi *server) {
        MHD_UNSIGNED_LONG_LONG timeout_msec;

        (void) MHD_run(server->mhd);
        if (MHD_get_timeout(server->mhd, &timeout_msec) == MHD_YES && timeout_msec == 0)
                api_http_schedule_run(server);
}

static int on_api_http_readable(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        run_api_http(userdata);
        return 0;
}

static int on_api_http_deferred_run(sd_event_source *source, void *userdata) {
        run_api_http(userdata);
        return 0;
}

static void on_api_http_connection(void *userdata, struct MHD_Connection *http, void **context,
                                   enum MHD_ConnectionNotificationCode code) {
        NodeApi *server = userdata;
        int fd = MHD_get_connection_info(http, MHD_CONNECTION_INFO_CONNECTION_FD)->connect_fd;

        if (code == MHD_CONNECTION_NOTIFY_STARTED) {
                *context = api_connection_find(server, fd);
                if (*context)
                        api_connection_set_deadline(*context, REQUEST_USEC);
                return;
        }
        if (*context)
                api_connection_http_ended(*context);
        *context = NULL;
}

static void on_api_http_completed(void *userdata, struct MHD_Connection *http, void **context,
                                  enum MHD_RequestTerminationCode code) {
        ApiConnection *connection = api_connection_of(http);

        if (*context)
                api_request_free(*context);
        *context = NULL;
        if (connection && !connection->upgrade)
                api_connection_set_deadline(connection, IDLE_USEC);
}

/* A NUL that was sent as %00 would end the path early, and another one would be compared. */
static size_t unescape_api_path(void *userdata, struct MHD_Connection *http, char *text) {
        size_t length = MHD_http_unescape(text);

        for (size_t i = 0; i < length; i++)
                if (text[i] == '\0')
                        text[i] = '?';
        return length;
}

int api_http_start(NodeApi *server) {
        int r, fd;

        server->mhd = MHD_start_daemon(
                MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_SUSPEND_RESUME |
                        MHD_ALLOW_UPGRADE,
                0, NULL, NULL, api_request_handle, server, MHD_OPTION_NOTIFY_CONNECTION,
                on_api_http_connection, server, MHD_OPTION_NOTIFY_COMPLETED, on_api_http_completed,
                server, MHD_OPTION_UNESCAPE_CALLBACK, unescape_api_path, server,
                MHD_OPTION_CONNECTION_LIMIT, (unsigned) API_CONNECTIONS_MAX,
                MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t) HTTP_CONNECTION_MEMORY,
                MHD_OPTION_CONNECTION_TIMEOUT, 0U, MHD_OPTION_END);
        if (!server->mhd)
                return -ENOMEM;
        fd = MHD_get_daemon_info(server->mhd, MHD_DAEMON_INFO_EPOLL_FD)->epoll_fd;
        r = sd_event_add_io(server->event, &server->mhd_source, fd, EPOLLIN, on_api_http_readable,
                            server);
        if (r >= 0)
                r = sd_event_add_defer(server->event, &server->deferred_run,
                                       on_api_http_deferred_run, server);
        return r < 0 ? r : sd_event_source_set_enabled(server->deferred_run, SD_EVENT_OFF);
}

/* It insists that no connection is suspended or upgraded. */
static void release_api_connections(NodeApi *server) {
        for (ApiConnection *connection = server->connections; connection;
             connection = connection->next) {
                if (connection->upgrade)
                        api_upgrade_free(connection->upgrade);
                else if (connection->suspended)
                        api_connection_resume(connection);
        }
}

void api_http_stop(NodeApi *server) {
        release_api_connections(server);
        if (server->mhd)
                MHD_stop_daemon(server->mhd);
        server->mhd = NULL;
        server->mhd_source = sd_event_source_disable_unref(server->mhd_source);
        server->deferred_run = sd_event_source_disable_unref(server->deferred_run);
}
