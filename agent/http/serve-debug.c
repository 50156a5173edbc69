/* SPDX-License-Identifier: Apache-2.0 */

/* /debug/…: the dump of the agent's state and its log level, for root only. */

#include "agent/http/handlers.h"
#include "agent/http/http-server.h"
#include "common/cleanup.h"
#include "common/log.h"
#include "common/text.h"

static const char debug_text_type[] = "text/plain; charset=utf-8";

enum MHD_Result http_handle_get_whole_configuration(HttpServer *server, struct MHD_Connection *http,
                                                    const char *rest) {
        enum MHD_Result result;

        if (!http_require_root(http, &result))
                return result;
        return http_reply_json_consume(
                http, http_handlers_of(server)->whole_configuration(http_userdata_of(server)));
}

enum MHD_Result http_handle_get_dump(HttpServer *server, struct MHD_Connection *http,
                                     const char *rest) {
        enum MHD_Result result;

        if (!http_require_root(http, &result))
                return result;
        return http_reply_text_consume(http, debug_text_type,
                                       http_handlers_of(server)->dump(http_userdata_of(server)));
}

static enum MHD_Result reply_log_level(struct MHD_Connection *http) {
        return http_reply_text_consume(http, debug_text_type,
                                       text_format("%s\n", log_level_name(log_level())));
}

enum MHD_Result http_handle_get_log_level(HttpServer *server, struct MHD_Connection *http,
                                          const char *rest) {
        enum MHD_Result result;

        return http_require_root(http, &result) ? reply_log_level(http) : result;
}

static int set_log_level_until_restart(const char *level, Error *reterr) {
        int priority = log_level_parse(level);

        if (priority < 0)
                return error_setf(reterr, EINVAL,
                                  "the log level must be error, warning, info or debug, not '%s'",
                                  level);
        if (priority == log_level())
                return 0;
        /* The change is logged at the more verbose of both levels, so that the journal contains
         * every change. */
        log_set_level(MAX(priority, log_level()));
        log_info("Log level set to %s until the agent restarts", level);
        log_set_level(priority);
        return 0;
}

enum MHD_Result http_handle_set_log_level(HttpServer *server, struct MHD_Connection *http,
                                          const char *rest) {
        const char *level = strna(http_query_parameter(http, "level"));
        cleanup_error Error error = ERROR_NULL;
        enum MHD_Result result;
        int r;

        if (!http_require_root(http, &result))
                return result;
        r = set_log_level_until_restart(level, &error);
        if (r < 0)
                return http_reply_errno(http, r, &error);
        return reply_log_level(http);
}
