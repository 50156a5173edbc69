/* SPDX-License-Identifier: Apache-2.0 */

/* /portForward/<namespace>/<pod>?port=…: mainstay-api gets a descriptor, a connection to a port of
 * the pod. Errors are reported before the upgrade. A request without an upgrade is only checked. */

#include "agent/http/handlers.h"
#include "agent/http/http-connection.h"
#include "agent/http/http-server.h"
#include "common/cleanup.h"
#include "common/packet.h"

enum {
        PORT_MAX = 65535
};

/* The connection, until the descriptor is passed. */
typedef struct PortUpgrade {
        HttpServer *server;
        HttpConnection *connection;
        int fd;
} PortUpgrade;

static void port_upgrade_free(void *userdata) {
        PortUpgrade *upgrade = userdata;

        if (upgrade)
                close_fd(upgrade->fd);
        free(upgrade);
}

static void on_port_upgraded(void *userdata, struct MHD_Connection *http, void *request,
                             const char *extra, size_t extra_size, MHD_socket fd,
                             struct MHD_UpgradeResponseHandle *handle) {
        PortUpgrade *upgrade = http_connection_take_upgrade(userdata);
        HttpServer *server = upgrade->server;

        http_connection_clear_deadline(upgrade->connection);
        (void) packet_send(fd, "", 1, upgrade->fd);
        (void) MHD_upgrade_action(handle, MHD_UPGRADE_ACTION_CLOSE);
        http_server_schedule_run(server);
        port_upgrade_free(upgrade);
}

static enum MHD_Result reply_port_upgrade(HttpServer *server, struct MHD_Connection *http,
                                          int fd_consume) {
        PortUpgrade *upgrade = calloc(1, sizeof(*upgrade));
        struct MHD_Response *response;
        enum MHD_Result result;

        if (!upgrade) {
                close_fd(fd_consume);
                return MHD_NO;
        }
        *upgrade = (PortUpgrade){ server, http_connection_of(http), fd_consume };
        http_connection_set_upgrade_take(upgrade->connection, upgrade, port_upgrade_free);
        response = MHD_create_response_for_upgrade(on_port_upgraded, upgrade->connection);
        if (!response)
                return MHD_NO;
        (void) MHD_add_response_header(response, MHD_HTTP_HEADER_UPGRADE, "descriptor");
        result = MHD_queue_response(http, MHD_HTTP_SWITCHING_PROTOCOLS, response);
        MHD_destroy_response(response);
        return result;
}

static int open_requested_port(HttpServer *server, struct MHD_Connection *http, const char *rest,
                               bool only_check, Error *reterr) {
        const HttpServerHandlers *handlers = http_handlers_of(server);
        void *userdata = http_userdata_of(server);
        const char *uid = http_query_parameter(http, "uid");
        cleanup_free char *path = strdup(rest);
        char *pod = path ? strchr(path, '/') : NULL;
        int64_t port = 0;
        int r;

        if (!path)
                return -ENOMEM;
        if (!pod || pod == path || pod[1] == '\0' || strchr(pod + 1, '/'))
                return error_setf(reterr, ENOENT,
                                  "the path must be /portForward/<namespace>/<pod>");
        *pod++ = '\0';
        if (only_check)
                return handlers->check_pod(userdata, path, pod, uid, reterr);
        r = http_query_number(http, "port", 1, &port, reterr);
        if (r < 0)
                return r;
        if (port < 1 || port > PORT_MAX)
                return error_setf(reterr, EINVAL, "port must be between 1 and %d", PORT_MAX);
        return handlers->open_port(userdata, path, pod, uid, (unsigned) port,
                                   streq_ptr(http_query_parameter(http, "family"), "6"), reterr);
}

enum MHD_Result http_handle_port_forward(HttpServer *server, struct MHD_Connection *http,
                                         const char *rest) {
        const char *upgrade =
                MHD_lookup_connection_value(http, MHD_HEADER_KIND, MHD_HTTP_HEADER_UPGRADE);
        bool only_check = !upgrade || !streq(upgrade, "descriptor");
        cleanup_error Error error = ERROR_NULL;
        enum MHD_Result result;
        int r;

        if (!http_require_api_peer(server, http, &result))
                return result;
        r = open_requested_port(server, http, rest, only_check, &error);
        if (r < 0)
                return http_reply_error(http, http_status_of_error(r), "%s",
                                        error_message(&error, r));
        if (only_check)
                return http_reply_error(http, MHD_HTTP_UPGRADE_REQUIRED,
                                        "the request must upgrade to a descriptor");
        return reply_port_upgrade(server, http, r);
}
