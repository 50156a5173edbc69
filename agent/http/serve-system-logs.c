/* SPDX-License-Identifier: Apache-2.0 */

/* /logs/<path> and /logs/?unit=…: mainstay-api gets a descriptor of the node's logs. mainstay-api
 * has checked the query as the kubelet does; the agent checks it again for its own safety. */

#include "agent/http/handlers.h"
#include "agent/http/http-server.h"
#include "common/cleanup.h"

#include <ctype.h>

typedef struct UnitList {
        SystemLogQuery *query;
        bool is_invalid;
} UnitList;

/* The name is also used in a path. */
static bool is_unit_name(const char *name) {
        if (strlen(name) > LOG_QUERY_UNIT_LENGTH_MAX || name[0] == '.' || name[0] == '\0')
                return false;
        for (const char *c = name; *c; c++)
                if (!isalnum((unsigned char) *c) && !strchr("-_.:@", *c))
                        return false;
        return true;
}

static enum MHD_Result add_unit(void *userdata, enum MHD_ValueKind kind, const char *name,
                                const char *value) {
        UnitList *list = userdata;

        if (!streq(name, "unit"))
                return MHD_YES;
        if (!value || !is_unit_name(value) || list->query->n_units == LOG_QUERY_UNITS_MAX) {
                list->is_invalid = true;
                return MHD_NO;
        }
        list->query->units[list->query->n_units++] = value;
        return MHD_YES;
}

static int read_log_query(struct MHD_Connection *http, SystemLogQuery *query, Error *reterr) {
        UnitList list = { .query = query };
        int r;

        (void) MHD_get_connection_values(http, MHD_GET_ARGUMENT_KIND, add_unit, &list);
        if (list.is_invalid)
                return error_setf(reterr, EINVAL, "a unit is invalid, or there are too many");
        query->pattern = http_query_parameter(http, "pattern");
        if (query->pattern && strlen(query->pattern) > LOG_QUERY_PATTERN_LENGTH_MAX)
                return error_setf(reterr, EINVAL, "pattern is too long");
        query->has_boot = http_query_parameter(http, "boot");
        r = http_query_number(http, "boot", INT64_MIN, &query->boot, reterr);
        if (r < 0)
                return r;
        r = http_query_number(http, "since", INT64_MIN, &query->since_sec, reterr);
        if (r < 0)
                return r;
        r = http_query_number(http, "until", INT64_MIN, &query->until_sec, reterr);
        if (r < 0)
                return r;
        return http_query_number(http, "tailLines", 0, &query->tail_lines, reterr);
}

static unsigned find_log_status(int r) {
        switch (r) {
        case -EPERM:
                return MHD_HTTP_METHOD_NOT_ALLOWED;
        case -EISDIR:
                return MHD_HTTP_MOVED_PERMANENTLY;
        case -EAGAIN:
                return MHD_HTTP_TOO_MANY_REQUESTS;
        case -EINVAL:
                return MHD_HTTP_BAD_REQUEST;
        case -ENOENT:
        case -ENOTDIR:
        case -ELOOP:
        case -EXDEV:
        case -ENXIO:
                return MHD_HTTP_NOT_FOUND;
        default:
                return MHD_HTTP_INTERNAL_SERVER_ERROR;
        }
}

static int open_requested_log(HttpServer *server, struct MHD_Connection *http, const char *rest,
                              const char **ret_type, Error *reterr) {
        SystemLogQuery query = { .tail_lines = -1 };
        int r = read_log_query(http, &query, reterr);

        if (r < 0)
                return r;
        return http_handlers_of(server)->open_system_log(http_userdata_of(server), rest,
                                                         query.n_units > 0 ? &query : NULL,
                                                         ret_type, reterr);
}

enum MHD_Result http_handle_system_logs(HttpServer *server, struct MHD_Connection *http,
                                        const char *rest) {
        cleanup_error Error error = ERROR_NULL;
        const char *type = NULL;
        enum MHD_Result result;
        int r;

        if (!http_require_api_peer(server, http, &result))
                return result;
        if (!http_wants_descriptor(http))
                return http_reply_error(http, MHD_HTTP_UPGRADE_REQUIRED,
                                        "the request must upgrade to a descriptor");
        r = open_requested_log(server, http, rest, &type, &error);
        if (r < 0)
                return http_reply_error(http, find_log_status(r), "%s", error_message(&error, r));
        return http_reply_descriptor(server, http, r, type);
}
