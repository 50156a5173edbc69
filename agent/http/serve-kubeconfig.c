/* SPDX-License-Identifier: Apache-2.0 */

/* POST /kubeconfig: the data for `mainstay kubeconfig`, with a new client certificate each time.
 * For root. */

#include "agent/http/handlers.h"
#include "agent/http/http-server.h"
#include "common/cleanup.h"

enum MHD_Result http_handle_make_kubeconfig(HttpServer *server, struct MHD_Connection *http,
                                            const char *rest) {
        cleanup_error Error error = ERROR_NULL;
        enum MHD_Result result;
        char *json = NULL;
        int r;

        if (!http_require_root(http, &result))
                return result;
        r = http_handlers_of(server)->make_kubeconfig(http_userdata_of(server), &json, &error);
        if (r < 0)
                return http_reply_errno(http, r, &error);
        return http_reply_json_consume(http, json);
}
