/* SPDX-License-Identifier: Apache-2.0 */

/* /containerLogs/<namespace>/<pod>/<container> with the kubelet's parameters: the log of a
 * container. A client that requests a descriptor gets that of a process (log-process.h); for other
 * clients the log is streamed. A stream that follows sleeps until inotify reports a write or rename
 * in the container's directory. log-reader.c reads the files. */

#include "agent/http/handlers.h"
#include "agent/http/http-server.h"

#include "agent/http/log-reader.h"
#include "common/cleanup.h"
#include "common/clock.h"

#include <sys/inotify.h>

typedef struct HttpLogStream {
        LogReader *reader;
        char *directory;
        unsigned attempt;
        ResponseStream *stream;
        sd_event_source *log_watch;
} HttpLogStream;

static ssize_t read_log_stream(void *source, char *buffer, size_t size) {
        HttpLogStream *log = source;

        return log_reader_read(log->reader, buffer, size);
}

static void log_stream_free(void *source) {
        HttpLogStream *log = source;

        sd_event_source_disable_unref(log->log_watch);
        log_reader_free(log->reader);
        free(log->directory);
        free(log);
}

static const ResponseStreamKind log_stream_kind = { "text/plain", true, read_log_stream,
                                                    log_stream_free };

static int on_log_written(sd_event_source *source, const struct inotify_event *event,
                          void *userdata) {
        HttpLogStream *log = userdata;

        response_stream_wake(log->stream);
        return 0;
}

/* The watch is added before the first byte is read, so that no write is missed. */
static int watch_log_directory(HttpServer *server, HttpLogStream *log, Error *reterr) {
        int r = sd_event_add_inotify_fd(http_event_of(server), &log->log_watch,
                                        log_reader_dir_fd(log->reader), LOG_READER_EVENTS,
                                        on_log_written, log);

        return r < 0 ? error_prefixf(reterr, r, "cannot follow %s", log->directory) : 0;
}

static int parse_log_since(struct MHD_Connection *http, LogOptions *options, Error *reterr) {
        const char *since_time = http_query_parameter(http, "sinceTime");
        int64_t seconds = 0;
        uint64_t now = now_realtime_usec();
        int r;

        r = http_query_number(http, "sinceSeconds", 1, &seconds, reterr);
        if (r < 0)
                return r;
        if (seconds > 0 && since_time)
                return error_setf(reterr, EINVAL,
                                  "at most one of sinceTime and sinceSeconds may be given");
        if (since_time && parse_rfc3339(since_time, &options->since_usec) < 0)
                return error_setf(reterr, EINVAL,
                                  "sinceTime must be a time like 2026-01-02T03:04:05Z");
        if (seconds > 0 && (uint64_t) seconds < now / USEC_PER_SEC)
                options->since_usec = now - (uint64_t) seconds * USEC_PER_SEC;
        return 0;
}

static int parse_log_options(struct MHD_Connection *http, LogOptions *ret, Error *reterr) {
        LogOptions options = LOG_OPTIONS_ALL;
        int r;

        r = http_query_number(http, "tailLines", 0, &options.tail_lines, reterr);
        if (r < 0)
                return r;
        r = http_query_number(http, "limitBytes", 1, &options.limit_bytes, reterr);
        if (r < 0)
                return r;
        r = parse_log_since(http, &options, reterr);
        if (r < 0)
                return r;
        options.follow = http_query_flag(http, "follow");
        options.timestamps = http_query_flag(http, "timestamps");
        *ret = options;
        return 0;
}

/* The caller frees 'ret->directory'. */
static int find_container_log(HttpServer *server, struct MHD_Connection *http,
                              const char *const names[3], LogSpec *ret, char **ret_directory,
                              Error *reterr) {
        HttpContainerLog found = { 0 };
        int r;

        r = parse_log_options(http, &ret->options, reterr);
        if (r < 0)
                return r;
        r = http_handlers_of(server)->find_log(http_userdata_of(server), names[0], names[1],
                                               names[2], http_query_flag(http, "previous"), &found,
                                               reterr);
        if (r < 0)
                return r;
        ret->directory = *ret_directory = found.directory;
        ret->attempt = found.attempt;
        ret->is_live = found.is_live;
        return 0;
}

static int open_log_stream(HttpServer *server, const LogSpec *spec, HttpLogStream *log,
                           Error *reterr) {
        int r;

        log->attempt = spec->attempt;
        log->directory = strdup(spec->directory);
        if (!log->directory)
                return -ENOMEM;
        r = log_reader_new(spec, &log->reader, reterr);
        if (r < 0)
                return r;
        return spec->options.follow && spec->is_live ? watch_log_directory(server, log, reterr) : 0;
}

static enum MHD_Result reply_log_error(struct MHD_Connection *http, const Error *error, int r) {
        unsigned status = r == -EBUSY ? MHD_HTTP_SERVICE_UNAVAILABLE : http_status_of_error(r);

        return http_reply_error(http, status, "%s", error_message(error, r));
}

static enum MHD_Result reply_log_descriptor(HttpServer *server, struct MHD_Connection *http,
                                            const LogSpec *spec) {
        cleanup_error Error error = ERROR_NULL;
        enum MHD_Result result;
        int r;

        if (!http_require_api_peer(server, http, &result))
                return result;
        r = log_process_start(http_log_processes_of(server), spec, &error);
        return r < 0 ? reply_log_error(http, &error, r)
                     : http_reply_descriptor(server, http, r, log_stream_kind.content_type);
}

static enum MHD_Result reply_log_stream(HttpServer *server, struct MHD_Connection *http,
                                        const LogSpec *spec) {
        cleanup_error Error error = ERROR_NULL;
        HttpLogStream *log = calloc(1, sizeof(*log));
        int r;

        if (!log)
                return MHD_NO;
        r = open_log_stream(server, spec, log, &error);
        if (r < 0) {
                log_stream_free(log);
                return reply_log_error(http, &error, r);
        }
        return response_stream_start(http_streams_of(server), http, &log_stream_kind, log,
                                     &log->stream);
}

enum MHD_Result http_handle_container_logs(HttpServer *server, struct MHD_Connection *http,
                                           const char *rest) {
        cleanup_error Error error = ERROR_NULL;
        cleanup_free char *path = strdup(rest), *directory = NULL;
        LogSpec spec;
        const char *names[3];
        int r;

        if (!path)
                return MHD_NO;
        if (http_split_container_path(path, names) < 0)
                return http_reply_error(
                        http, MHD_HTTP_NOT_FOUND,
                        "the path must be /containerLogs/<namespace>/<pod>/<container>");
        r = find_container_log(server, http, names, &spec, &directory, &error);
        if (r < 0)
                return reply_log_error(http, &error, r);
        return http_wants_descriptor(http) ? reply_log_descriptor(server, http, &spec)
                                           : reply_log_stream(server, http, &spec);
}

void http_server_notify_log_end(HttpServer *server, const char *directory, unsigned attempt) {
        const ResponseStreams *streams = http_streams_of(server);
        ResponseStream *stream = NULL;

        log_processes_notify_end(http_log_processes_of(server), directory, attempt);
        while ((stream = response_stream_next(streams, &log_stream_kind, stream))) {
                HttpLogStream *log = response_stream_source(stream);

                if (log->attempt != attempt || !streq(log->directory, directory))
                        continue;
                log_reader_set_ended(log->reader);
                response_stream_wake(stream);
        }
}
