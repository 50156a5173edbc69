/* SPDX-License-Identifier: Apache-2.0 */

/* /debug/…: the dump of the agent's state and its log level, for root only. */

#include "agent/http/handlers.h"
#include "agent/http/http-server.h"
#include "common/cleanup.h"

static const char debug_text_type[] = "text/plain; charset=utf-8";

enum MHD_Result http_handle_get_dump(HttpServer *server, struct MHD_Connection *http,
                                     const char *rest) {
        enum MHD_Result result;

        if (!http_require_root(http, &result))
                return result;
        return http_reply_text_consume(http, debug_text_type,
                                       http_handlers_of(server)->dump(http_userdata_of(server)));
}

static enum MHD_Result reply_log_level(HttpServer *server, struct MHD_Connection *http) {
        const char *level = http_handlers_of(server)->log_level(http_userdata_of(server));
        char *line;

        return http_reply_text_consume(http, debug_text_type,
                                       asprintf(&line, "%s\n", level) < 0 ? NULL : line);
}

enum MHD_Result http_handle_get_log_level(HttpServer *server, struct MHD_Connection *http,
                                          const char *rest) {
        enum MHD_Result result;

        return http_require_root(http, &result) ? reply_log_level(server, http) : result;
}

enum MHD_Result http_handle_set_log_level(HttpServer *server, struct MHD_Connection *http,
                                          const char *rest) {
        const char *level = strna(http_query_parameter(http, "level"));
        cleanup_error Error error = ERROR_NULL;
        enum MHD_Result result;
        int r;

        if (!http_require_root(http, &result))
                return result;
        r = http_handlers_of(server)->set_log_level(http_userdata_of(server), level, &error);
        if (r < 0)
                return http_reply_errno(http, r, &error);
        return reply_log_level(server, http);
}
