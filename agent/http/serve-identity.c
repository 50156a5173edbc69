/* SPDX-License-Identifier: Apache-2.0 */

/* /identity: the recipients of this node; and POST, for root, to create, rotate or remove an
 * identity. /encryptedsecrets: the Secrets, and whether the node can decrypt them. */

#include "agent/http/handlers.h"
#include "agent/http/http-server.h"
#include "common/cleanup.h"

enum MHD_Result http_handle_get_identity(HttpServer *server, struct MHD_Connection *http,
                                         const char *rest) {
        return http_reply_json_consume(
                http, http_handlers_of(server)->identity(http_userdata_of(server)));
}

enum MHD_Result http_handle_get_encrypted_secrets(HttpServer *server, struct MHD_Connection *http,
                                                  const char *rest) {
        return http_reply_json_consume(
                http, http_handlers_of(server)->encrypted_secrets(http_userdata_of(server)));
}

enum MHD_Result http_handle_change_identity(HttpServer *server, struct MHD_Connection *http,
                                            const char *rest) {
        const char *action = http_query_parameter(http, "action");
        cleanup_error Error error = ERROR_NULL;
        enum MHD_Result result;
        int r;

        if (!http_require_root(http, &result))
                return result;
        r = http_handlers_of(server)->change_identity(http_userdata_of(server), strna(action),
                                                      &error);
        if (r < 0)
                return http_reply_errno(http, r, &error);
        return http_handle_get_identity(server, http, rest);
}
