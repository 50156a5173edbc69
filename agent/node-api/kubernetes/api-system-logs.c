/* SPDX-License-Identifier: Apache-2.0 */

/* /logs/: the files of /var/log and, with a query, the logs of services. The query is checked in
 * the kubelet's order and with its messages; the agent opens the requested logs, and passes a
 * descriptor. */

#include "agent/model/system-log-query.h"
#include "agent/node-api/http/request-url.h"
#include "agent/node-api/process/node-api-private.h"
#include "common/cleanup.h"
#include "common/clock.h"

#include <ctype.h>
#include <stdarg.h>

#define NOT_ACCEPTABLE 406

typedef struct LogQueryWords {
        const char *file; /* of a query: contains a slash; NULL: none */
        unsigned n_files;
} LogQueryWords;

typedef struct LogQueryReader {
        SystemLogQuery query;
        LogQueryWords words;
        bool has_query, has_since, has_until, has_tail_lines;
        unsigned n_units; /* including those beyond the limit */
        unsigned status;  /* status of the reply; 0: the query is valid */
        char message[512];
} LogQueryReader;

static void refuse_log_query(LogQueryReader *reader, unsigned status, const char *format, ...)
        printf_like(3, 4);

/* The first error is reported. */
static void refuse_log_query(LogQueryReader *reader, unsigned status, const char *format, ...) {
        va_list ap;

        if (reader->status != 0)
                return;
        reader->status = status;
        va_start(ap, format);
        (void) vsnprintf(reader->message, sizeof(reader->message), format, ap);
        va_end(ap);
}

/* ---- parsing ---- */

static bool is_blank_text(const char *text) {
        return text[strspn(text, " \t\r\n")] == '\0';
}

static enum MHD_Result add_query_word(void *userdata, enum MHD_ValueKind kind, const char *name,
                                      const char *value) {
        LogQueryReader *reader = userdata;

        if (!streq(name, "query"))
                return MHD_YES;
        reader->has_query = true;
        if (strpbrk(strna(value), "/\\")) {
                reader->words.file = value;
                reader->words.n_files++;
        } else if (!is_blank_text(strna(value))) {
                if (reader->query.n_units < LOG_QUERY_UNITS_MAX)
                        reader->query.units[reader->query.n_units++] = value;
                reader->n_units++;
        }
        return MHD_YES;
}

static bool parse_query_time(struct MHD_Connection *http, LogQueryReader *reader, const char *name,
                             int64_t *ret_sec) {
        const char *text = api_parameter(http, name);
        uint64_t usec;

        if (!text || !*text)
                return false;
        if (parse_rfc3339(text, &usec) < 0)
                refuse_log_query(reader, MHD_HTTP_BAD_REQUEST,
                                 "%s: Invalid value: \"%.64s\": invalid time format", name, text);
        else
                *ret_sec = (int64_t) (usec / USEC_PER_SEC);
        return true;
}

static bool parse_query_number(struct MHD_Connection *http, LogQueryReader *reader,
                               const char *name, int64_t *ret) {
        const char *text = api_parameter(http, name);
        char *end;
        long long number;

        if (!text || !*text)
                return false;
        errno = 0;
        number = strtoll(text, &end, 10);
        if (errno != 0 || isspace((unsigned char) text[0]) || end == text || *end != '\0')
                refuse_log_query(reader, MHD_HTTP_BAD_REQUEST,
                                 "%s: Invalid value: \"%.64s\": strconv.Atoi: parsing \"%.64s\": "
                                 "invalid syntax",
                                 name, text, text);
        else
                *ret = number;
        return true;
}

static void parse_log_query(struct MHD_Connection *http, LogQueryReader *reader) {
        SystemLogQuery *query = &reader->query;
        const char *pattern = api_parameter(http, "pattern");

        (void) MHD_get_connection_values(http, MHD_GET_ARGUMENT_KIND, add_query_word, reader);
        if (reader->has_query && reader->words.n_files == 0 && reader->n_units == 0)
                refuse_log_query(reader, MHD_HTTP_BAD_REQUEST,
                                 "query: Invalid value: \"\": query cannot be empty");
        reader->has_since = parse_query_time(http, reader, "sinceTime", &query->since_sec);
        reader->has_until = parse_query_time(http, reader, "untilTime", &query->until_sec);
        reader->has_tail_lines = parse_query_number(http, reader, "tailLines", &query->tail_lines);
        query->has_boot = parse_query_number(http, reader, "boot", &query->boot);
        query->pattern = pattern && *pattern ? pattern : NULL;
}

/* ---- validation ---- */

static bool has_query_options(const LogQueryReader *reader) {
        return reader->has_since || reader->has_until || reader->has_tail_lines ||
               reader->query.pattern || reader->query.has_boot;
}

static void validate_units(LogQueryReader *reader) {
        if (reader->n_units > LOG_QUERY_UNITS_MAX)
                refuse_log_query(reader, NOT_ACCEPTABLE,
                                 "query: Too many: %u: must have at most %d items", reader->n_units,
                                 LOG_QUERY_UNITS_MAX);
        for (unsigned i = 0; i < reader->query.n_units; i++) {
                const char *unit = reader->query.units[i];
                bool is_valid = unit[0] != '.';

                if (strlen(unit) > LOG_QUERY_UNIT_LENGTH_MAX)
                        refuse_log_query(reader, NOT_ACCEPTABLE,
                                         "query: Invalid value: \"%.64s\": length must be less "
                                         "than %d",
                                         unit, LOG_QUERY_UNIT_LENGTH_MAX);
                for (const char *c = unit; *c; c++)
                        is_valid = is_valid && (isalnum((unsigned char) *c) || strchr("-_.:@", *c));
                if (!is_valid)
                        refuse_log_query(reader, NOT_ACCEPTABLE,
                                         "query: Invalid value: \"%.64s\": input contains "
                                         "unsupported characters",
                                         unit);
        }
}

static void validate_files(LogQueryReader *reader) {
        const LogQueryWords *words = &reader->words;

        if (words->n_files == 0 && reader->n_units == 0)
                refuse_log_query(reader, NOT_ACCEPTABLE,
                                 "query: Required value: cannot be empty with options");
        else if (words->n_files > 0 && reader->n_units > 0)
                refuse_log_query(reader, NOT_ACCEPTABLE,
                                 "query: Invalid value: \"%.64s\": cannot specify a file and "
                                 "service",
                                 words->file);
        else if (words->n_files > 1)
                refuse_log_query(reader, NOT_ACCEPTABLE,
                                 "query: Invalid value: \"%.64s\": cannot specify more than one "
                                 "file",
                                 words->file);
        else if (words->n_files == 1 && has_query_options(reader))
                refuse_log_query(reader, NOT_ACCEPTABLE,
                                 "query: Invalid value: \"%.64s\": cannot specify file with "
                                 "options",
                                 words->file);
}

static void validate_log_query(LogQueryReader *reader) {
        const SystemLogQuery *query = &reader->query;

        validate_units(reader);
        validate_files(reader);
        if (reader->has_since && reader->has_until && query->since_sec > query->until_sec)
                refuse_log_query(reader, NOT_ACCEPTABLE,
                                 "untilTime: Invalid value: must be after `sinceTime`");
        if (query->has_boot && query->boot > 0)
                refuse_log_query(reader, NOT_ACCEPTABLE,
                                 "boot: Invalid value: %lld: must be less than 1",
                                 (long long) query->boot);
        if (reader->has_tail_lines && query->tail_lines < 0)
                refuse_log_query(reader, NOT_ACCEPTABLE,
                                 "tailLines: Invalid value: %lld: must be greater than or equal "
                                 "to 0",
                                 (long long) query->tail_lines);
        if (query->tail_lines > LOG_QUERY_TAIL_LINES_MAX)
                refuse_log_query(reader, NOT_ACCEPTABLE,
                                 "tailLines: Invalid value: %lld: must be less than or equal to "
                                 "%d",
                                 (long long) query->tail_lines, LOG_QUERY_TAIL_LINES_MAX);
        if (query->pattern && strlen(query->pattern) > LOG_QUERY_PATTERN_LENGTH_MAX)
                refuse_log_query(reader, NOT_ACCEPTABLE,
                                 "pattern: Too long: may not be more than %d bytes",
                                 LOG_QUERY_PATTERN_LENGTH_MAX);
}

/* ---- requests to the agent ---- */

static void write_log_path(FILE *out, const char *path) {
        path += strspn(path, "/");
        fputs("/logs/", out);
        for (; *path; path++) {
                const char character[] = { *path, '\0' };

                if (*path == '/' || *path == '\\')
                        fputc('/', out);
                else
                        url_write_escaped(out, character);
        }
}

static void write_log_units(FILE *out, const LogQueryReader *reader) {
        const SystemLogQuery *query = &reader->query;

        fputs("/logs/?", out);
        for (unsigned i = 0; i < query->n_units; i++)
                url_write_argument(out, "unit", query->units[i]);
        if (reader->has_since)
                fprintf(out, "since=%lld&", (long long) query->since_sec);
        if (reader->has_until)
                fprintf(out, "until=%lld&", (long long) query->until_sec);
        if (reader->has_tail_lines)
                fprintf(out, "tailLines=%lld&", (long long) query->tail_lines);
        if (query->has_boot)
                fprintf(out, "boot=%lld&", (long long) query->boot);
        url_write_argument(out, "pattern", query->pattern);
}

static ApiStepResult ask_for_system_log(ApiRequest *request, const LogQueryReader *reader,
                                        const char *rest) {
        cleanup_free char *path = NULL;
        size_t size;
        FILE *out = open_memstream(&path, &size);

        if (!out)
                return API_STEP_ABORT;
        if (reader->query.n_units > 0)
                write_log_units(out, reader);
        else
                write_log_path(out, reader->words.file ? reader->words.file : rest);
        if (fclose(out) != 0)
                return API_STEP_ABORT;
        return api_request_ask_agent(request,
                                     &(AgentRequestSpec){ .kind = AGENT_DESCRIPTOR, .path = path });
}

/* ---- the reply ---- */

/* As in Go's file server, the path of a directory ends with a slash. */
static ApiStepResult redirect_to_directory(ApiRequest *request) {
        const char *slash = strrchr(request->path, '/');
        cleanup_free char *location = NULL;
        size_t size;
        FILE *out = open_memstream(&location, &size);
        struct MHD_Response *response;

        if (!out)
                return API_STEP_ABORT;
        url_write_escaped(out, slash ? slash + 1 : request->path);
        fputc('/', out);
        if (fclose(out) != 0)
                return API_STEP_ABORT;
        response = MHD_create_response_from_buffer(0, NULL, MHD_RESPMEM_PERSISTENT);
        if (response)
                (void) MHD_add_response_header(response, MHD_HTTP_HEADER_LOCATION, location);
        return api_queue_reply(request, MHD_HTTP_MOVED_PERMANENTLY, response);
}

static ApiStepResult reply_system_log(ApiRequest *request) {
        if (request->reply_fd >= 0)
                return api_reply_descriptor(request);
        if (request->reply_error >= 0 && request->reply_status == MHD_HTTP_MOVED_PERMANENTLY)
                return redirect_to_directory(request);
        if (request->reply_error >= 0 && request->reply_status == MHD_HTTP_NOT_FOUND)
                return api_reply_text(request, MHD_HTTP_NOT_FOUND, "404 page not found");
        return api_reply_agent_error(request);
}

ApiStepResult api_handle_system_logs(ApiRequest *request, const char *rest) {
        const ApiSettings *settings = &request->server->settings;
        LogQueryReader reader = { .query.tail_lines = -1 };

        if (request->has_reply)
                return reply_system_log(request);
        if (!settings->has_system_logs)
                return api_reply_text(request, MHD_HTTP_METHOD_NOT_ALLOWED,
                                      "logs endpoint is disabled.");
        if (streq(request->path, "/logs"))
                return redirect_to_directory(request);
        if (settings->has_log_queries) {
                parse_log_query(request->http, &reader);
                if (reader.has_query || has_query_options(&reader))
                        validate_log_query(&reader);
                if (reader.has_query && !streq(request->path, "/logs/"))
                        refuse_log_query(&reader, NOT_ACCEPTABLE, "path not allowed in query mode");
        }
        if (reader.status != 0)
                return api_reply_text(request, reader.status, reader.message);
        return ask_for_system_log(request, &reader, rest);
}
