/* SPDX-License-Identifier: Apache-2.0 */

/* /portForward/<namespace>/<pod>?port=…: mainstay-api gets a descriptor, a socket that receives a
 * connection to a port of the pod; see port_connection_request(). Errors that are already known are
 * reported before the upgrade. A request without an upgrade is only checked. */

#include "agent/http/handlers.h"
#include "agent/http/http-server.h"
#include "common/cleanup.h"

enum {
        PORT_MAX = 65535
};

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
        return handlers->connect_to_port(userdata, path, pod, uid, (unsigned) port,
                                         streq_ptr(http_query_parameter(http, "family"), "6"),
                                         reterr);
}

enum MHD_Result http_handle_port_forward(HttpServer *server, struct MHD_Connection *http,
                                         const char *rest) {
        bool only_check = !http_wants_descriptor(http);
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
        return http_reply_descriptor(server, http, r, NULL);
}
