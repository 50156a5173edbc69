/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/serve/serve-private.h"

#include "agent/serve/log-reader.h"
#include "common/cleanup.h"
#include "common/clock.h"

#include <sys/inotify.h>

/* /containerLogs/<namespace>/<pod>/<container>, with the kubelet's parameters. Who follows sleeps
 * until inotify says that something was written or renamed in the container's directory. */

typedef struct LogStream {
        LogReader *reader;
        char *directory;
        unsigned attempt;
        Stream *stream;
        sd_event_source *written;
} LogStream;

static ssize_t log_read(void *source, char *buffer, size_t size) {
        LogStream *log = source;

        return log_reader_read(log->reader, buffer, size);
}

static void log_free(void *source) {
        LogStream *log = source;

        sd_event_source_disable_unref(log->written);
        log_reader_free(log->reader);
        free(log->directory);
        free(log);
}

static const StreamKind log_kind = { "text/plain", true, log_read, log_free };

static int on_written(sd_event_source *source, const struct inotify_event *event, void *userdata) {
        LogStream *log = userdata;

        stream_wake(log->stream);
        return 0;
}

/* Before the first byte is read, so that nothing is written unnoticed. */
static int watch_directory(Serve *serve, LogStream *log, Error *reterr) {
        int r = sd_event_add_inotify_fd(
                serve->event, &log->written, log_reader_directory(log->reader),
                IN_MODIFY | IN_CREATE | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE | IN_ONLYDIR,
                on_written, log);

        return r < 0 ? error_prefixf(reterr, r, "cannot follow %s", log->directory) : 0;
}

static int since_parameters(struct MHD_Connection *http, LogOptions *options, Error *reterr) {
        const char *since_time = serve_parameter(http, "sinceTime");
        int64_t seconds = 0;
        uint64_t now = now_realtime_usec();
        int r;

        r = serve_number(http, "sinceSeconds", 1, &seconds, reterr);
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

static int parse_options(struct MHD_Connection *http, LogOptions *ret, Error *reterr) {
        LogOptions options = LOG_OPTIONS_ALL;
        int r;

        r = serve_number(http, "tailLines", 0, &options.tail_lines, reterr);
        if (r >= 0)
                r = serve_number(http, "limitBytes", 1, &options.limit_bytes, reterr);
        if (r >= 0)
                r = since_parameters(http, &options, reterr);
        if (r < 0)
                return r;
        options.follow = serve_flag(http, "follow");
        options.timestamps = serve_flag(http, "timestamps");
        *ret = options;
        return 0;
}

static int open_log(Serve *serve, struct MHD_Connection *http, const char *const names[3],
                    LogStream *log, Error *reterr) {
        ServeLog found = { 0 };
        LogOptions options;
        int r;

        r = parse_options(http, &options, reterr);
        if (r < 0)
                return r;
        r = serve->handlers->find_log(serve->userdata, names[0], names[1], names[2],
                                      serve_flag(http, "previous"), &found, reterr);
        if (r < 0)
                return r;
        log->directory = found.directory;
        log->attempt = found.attempt;
        r = log_reader_new(found.directory, found.attempt, found.is_live, &options, &log->reader,
                           reterr);
        if (r < 0)
                return r;
        return options.follow && found.is_live ? watch_directory(serve, log, reterr) : 0;
}

static unsigned status_of(int r) {
        switch (r) {
        case -ENOENT:
                return MHD_HTTP_NOT_FOUND;
        case -EINVAL:
        case -EAGAIN:
                return MHD_HTTP_BAD_REQUEST;
        default:
                return MHD_HTTP_INTERNAL_SERVER_ERROR;
        }
}

enum MHD_Result serve_logs(Serve *serve, struct MHD_Connection *http, const char *rest) {
        cleanup_error Error error = ERROR_NULL;
        cleanup_free char *path = strdup(rest);
        const char *names[3];
        LogStream *log;
        int r;

        if (!path)
                return MHD_NO;
        if (serve_split_path(path, names) < 0)
                return serve_refuse(http, MHD_HTTP_NOT_FOUND,
                                    "ask for /containerLogs/<namespace>/<pod>/<container>");
        log = calloc(1, sizeof(*log));
        if (!log)
                return MHD_NO;
        r = open_log(serve, http, names, log, &error);
        if (r < 0) {
                log_free(log);
                return serve_refuse(http, status_of(r), "%s", error_message(&error, r));
        }
        return stream_answer(serve, http, &log_kind, log, &log->stream);
}

void serve_log_ended(Serve *serve, const char *directory, unsigned attempt) {
        for (Stream *stream = serve->streams; stream; stream = stream->next) {
                LogStream *log = stream->source;

                if (stream->kind != &log_kind || log->attempt != attempt ||
                    !streq(log->directory, directory))
                        continue;
                log_reader_end(log->reader);
                stream_wake(stream);
        }
}
