/* SPDX-License-Identifier: Apache-2.0 */

/* Replies with a descriptor, for mainstay-api: the connection is upgraded, the descriptor is passed
 * with one byte, and the connection ends. */

#include "agent/http/handlers.h"
#include "agent/http/http-connection.h"
#include "common/cleanup.h"
#include "common/packet.h"

/* The connection, until the descriptor is passed. */
typedef struct DescriptorUpgrade {
        HttpServer *server;
        HttpConnection *connection;
        int fd;
} DescriptorUpgrade;

static void descriptor_upgrade_free(void *userdata) {
        DescriptorUpgrade *upgrade = userdata;

        if (upgrade)
                close_fd(upgrade->fd);
        free(upgrade);
}

static void on_descriptor_upgraded(void *userdata, struct MHD_Connection *http, void *request,
                                   const char *extra, size_t extra_size, MHD_socket fd,
                                   struct MHD_UpgradeResponseHandle *handle) {
        DescriptorUpgrade *upgrade = http_connection_take_upgrade(userdata);
        HttpServer *server = upgrade->server;

        http_connection_clear_deadline(upgrade->connection);
        (void) packet_send(fd, "", 1, upgrade->fd);
        (void) MHD_upgrade_action(handle, MHD_UPGRADE_ACTION_CLOSE);
        http_server_schedule_run(server);
        descriptor_upgrade_free(upgrade);
}

bool http_wants_descriptor(struct MHD_Connection *http) {
        const char *upgrade =
                MHD_lookup_connection_value(http, MHD_HEADER_KIND, MHD_HTTP_HEADER_UPGRADE);

        return upgrade && streq(upgrade, "descriptor");
}

enum MHD_Result http_reply_descriptor(HttpServer *server, struct MHD_Connection *http,
                                      int fd_consume, const char *type) {
        DescriptorUpgrade *upgrade = calloc(1, sizeof(*upgrade));
        struct MHD_Response *response;
        enum MHD_Result result;

        if (!upgrade) {
                close_fd(fd_consume);
                return MHD_NO;
        }
        *upgrade = (DescriptorUpgrade){ server, http_connection_of(http), fd_consume };
        http_connection_set_upgrade_take(upgrade->connection, upgrade, descriptor_upgrade_free);
        response = MHD_create_response_for_upgrade(on_descriptor_upgraded, upgrade->connection);
        if (!response)
                return MHD_NO;
        (void) MHD_add_response_header(response, MHD_HTTP_HEADER_UPGRADE, "descriptor");
        if (type)
                (void) MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
        result = MHD_queue_response(http, MHD_HTTP_SWITCHING_PROTOCOLS, response);
        MHD_destroy_response(response);
        return result;
}
