/* SPDX-License-Identifier: Apache-2.0 */

/* /containerLogs/<namespace>/<pod>/<container>: the query is checked as in the kubelet, and
 * passed to the agent in one form. */

#include "agent/node-api/http/request-url.h"
#include "agent/node-api/process/node-api-private.h"
#include "common/cleanup.h"
#include "common/clock.h"

#include <ctype.h>

/* Parses a flag as the kubelet does: everything except "0" and "false" is true, even an empty
 * value. */
static bool is_log_flag_set(struct MHD_Connection *http, const char *name) {
        const char *value = NULL;

        if (MHD_lookup_connection_value_n(http, MHD_GET_ARGUMENT_KIND, name, strlen(name), &value,
                                          NULL) != MHD_YES)
                return false;
        return !value || (!streq(value, "0") && strcasecmp(value, "false") != 0);
}

/* 0; 400: not a number; 422: too small. */
static unsigned check_log_number(const char *text, int64_t min) {
        char *end;
        long long number;

        errno = 0;
        number = strtoll(text, &end, 10);
        if (errno != 0 || isspace((unsigned char) text[0]) || end == text || *end != '\0')
                return MHD_HTTP_BAD_REQUEST;
        return number < min ? 422 : 0;
}

static unsigned write_log_number(struct MHD_Connection *http, FILE *out, const char *name,
                                 const char *agent_name, int64_t min) {
        const char *text = api_parameter(http, name);
        unsigned status;

        if (!text || !*text || (streq(name, "tail") && streq(text, "all")))
                return 0;
        status = check_log_number(text, min);
        if (status == 0)
                fprintf(out, "&%s=%lld", agent_name, strtoll(text, NULL, 10));
        return status;
}

static unsigned write_log_since(struct MHD_Connection *http, FILE *out) {
        const char *time = api_parameter(http, "sinceTime");
        const char *seconds = api_parameter(http, "sinceSeconds");
        uint64_t usec;

        if (time && *time) {
                if (parse_rfc3339(time, &usec) < 0)
                        return MHD_HTTP_BAD_REQUEST;
                if (seconds && *seconds)
                        return 422;
                fputs("&sinceTime=", out);
                url_write_escaped(out, time);
        }
        return write_log_number(http, out, "sinceSeconds", "sinceSeconds", 1);
}

/* 0, or the status of the error. */
static unsigned write_log_query(struct MHD_Connection *http, FILE *out) {
        static const char *const flags[] = { "follow", "previous", "timestamps" };
        const char *stream = api_parameter(http, "stream");
        bool has_lines = api_parameter(http, "tailLines");
        unsigned status;

        if (stream && *stream && !streq(stream, "All"))
                return MHD_HTTP_BAD_REQUEST;
        for (size_t i = 0; i < N_ELEMENTS(flags); i++)
                fprintf(out, "%s%s=%d", i > 0 ? "&" : "", flags[i],
                        is_log_flag_set(http, flags[i]));
        status = write_log_number(http, out, has_lines ? "tailLines" : "tail", "tailLines", 0);
        if (status == 0)
                status = write_log_number(http, out, "limitBytes", "limitBytes", 1);
        return status ? status : write_log_since(http, out);
}

static ApiStepResult ask_for_log(ApiRequest *request, const char *const names[3]) {
        cleanup_free char *path = NULL;
        size_t size;
        FILE *out = open_memstream(&path, &size);
        unsigned status;

        if (!out)
                return API_STEP_ABORT;
        fputs("/containerLogs", out);
        url_write_components(out, names, 3);
        fputc('?', out);
        status = write_log_query(request->http, out);
        if (fclose(out) != 0)
                return API_STEP_ABORT;
        if (status != 0)
                return api_reply_text(request, status,
                                      status == MHD_HTTP_BAD_REQUEST
                                              ? "{\"message\": \"Unable to decode query.\"}"
                                              : "{\"message\": \"Invalid request.\"}");
        return api_request_ask_agent(request,
                                     &(AgentRequestSpec){ .kind = AGENT_DESCRIPTOR, .path = path });
}

ApiStepResult api_handle_container_logs(ApiRequest *request, const char *rest) {
        cleanup_free char *path = strdup(rest);
        const char *names[3];

        if (request->has_reply)
                return request->reply_fd >= 0 ? api_reply_descriptor(request)
                                              : api_reply_agent_error(request);
        if (!path)
                return API_STEP_ABORT;
        if (split_url_path(path, names, 3) != 3)
                return api_reply_text(request, MHD_HTTP_NOT_FOUND, "404: Page Not Found");
        return ask_for_log(request, names);
}
