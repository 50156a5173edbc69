/* SPDX-License-Identifier: Apache-2.0 */

/* /nodeapi/…, for mainstay-api only: its settings, a connection to the signer, and whether a client
 * may make a request that mainstay-api answers itself. */

#include "agent/http/handlers.h"
#include "agent/http/serve-access.h"
#include "common/cleanup.h"

/* /nodeapi/access?method=…&path=…[&session=1]. The reply is the user. */
enum MHD_Result http_handle_client_access(HttpServer *server, struct MHD_Connection *http,
                                          const char *rest) {
        const char *method = http_query_parameter(http, "method");
        const char *path = http_query_parameter(http, "path");
        enum MHD_Result result;

        if (!http_require_api_peer(server, http, &result))
                return result;
        if (!method || !path)
                return http_reply_error(http, MHD_HTTP_BAD_REQUEST,
                                        "the parameters 'method' and 'path' are required");
        if (http_check_access(server, http, method, path, http_query_flag(http, "session"),
                              &result) != HTTP_ACCESS_GRANTED)
                return result;
        return http_reply_text(http, MHD_HTTP_OK, "application/json", http_granted_user(http));
}

enum MHD_Result http_handle_connect_signer(HttpServer *server, struct MHD_Connection *http,
                                           const char *rest) {
        cleanup_error Error error = ERROR_NULL;
        enum MHD_Result result;
        int fd;

        if (!http_require_api_peer(server, http, &result))
                return result;
        if (!http_wants_descriptor(http))
                return http_reply_error(http, MHD_HTTP_UPGRADE_REQUIRED,
                                        "the request must upgrade to a descriptor");
        fd = http_handlers_of(server)->connect_signer(http_userdata_of(server), &error);
        return fd < 0 ? http_reply_errno(http, fd, &error)
                      : http_reply_descriptor(server, http, fd, NULL);
}

enum MHD_Result http_handle_node_api_settings(HttpServer *server, struct MHD_Connection *http,
                                              const char *rest) {
        cleanup_error Error error = ERROR_NULL;
        enum MHD_Result result;
        char *json = NULL;
        int r;

        if (!http_require_api_peer(server, http, &result))
                return result;
        r = http_handlers_of(server)->node_api_settings(http_userdata_of(server), &json, &error);
        if (r < 0)
                return http_reply_errno(http, r, &error);
        return http_reply_json_consume(http, json);
}
