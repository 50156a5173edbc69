/* SPDX-License-Identifier: Apache-2.0 */

/* HTTP with libmicrohttpd, without TLS: its connections are ends of socket pairs, whose other ends
 * belong to TlsStream. */

#include "agent/node-api/process/node-api-private.h"
#include "common/cleanup.h"
#include "common/clock.h"

#define REQUEST_USEC (10 * USEC_PER_SEC) /* for the first request */
#define IDLE_USEC    (90 * USEC_PER_SEC) /* until the next one, as in the kubelet */

enum {
        HTTP_CONNECTION_MEMORY = 32 * 1024,
};

void api_http_schedule_run(NodeApi *server) {
        mhd_loop_schedule_run(&server->http);
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

/* libmicrohttpd 0.9.75 forgets a connection whose HTTP/1.0 reply was empty: the connection is
 * closed, but its descriptor is in no epoll set. All connections with a separate timeout are
 * checked the next time it runs. */
static void end_http_1_0_connection(NodeApi *server, struct MHD_Connection *http) {
        (void) MHD_set_connection_option(http, MHD_CONNECTION_OPTION_TIMEOUT,
                                         (unsigned) (IDLE_USEC / USEC_PER_SEC));
        api_http_schedule_run(server);
}

static void on_api_http_completed(void *userdata, struct MHD_Connection *http, void **context,
                                  enum MHD_RequestTerminationCode code) {
        NodeApi *server = userdata;
        ApiConnection *connection = api_connection_of(http);
        const ApiRequest *request = *context;

        if (request && request->is_http_1_0)
                end_http_1_0_connection(server, http);
        if (*context)
                api_request_free(*context);
        *context = NULL;
        if (connection && !connection->upgrade)
                api_connection_set_deadline(connection, IDLE_USEC);
}

static struct MHD_Daemon *start_api_daemon(NodeApi *server) {
        return MHD_start_daemon(MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET |
                                        MHD_ALLOW_SUSPEND_RESUME | MHD_ALLOW_UPGRADE,
                                0, NULL, NULL, api_request_handle, server,
                                MHD_OPTION_NOTIFY_CONNECTION, on_api_http_connection, server,
                                MHD_OPTION_NOTIFY_COMPLETED, on_api_http_completed, server,
                                MHD_OPTION_UNESCAPE_CALLBACK, mhd_unescape_path, server,
                                MHD_OPTION_CONNECTION_LIMIT, (unsigned) API_CONNECTIONS_MAX,
                                MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t) HTTP_CONNECTION_MEMORY,
                                MHD_OPTION_CONNECTION_TIMEOUT, 0U, MHD_OPTION_END);
}

int api_http_start(NodeApi *server) {
        return mhd_loop_start(&server->http, server->event, start_api_daemon(server));
}

/* libmicrohttpd requires that no connection is suspended or upgraded. */
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
        mhd_loop_stop(&server->http);
}
