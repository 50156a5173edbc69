/* SPDX-License-Identifier: Apache-2.0 */

/* Streams as responses; see the header. While there is nothing to send, the connection is
 * suspended. libmicrohttpd does not watch the socket of a suspended connection, so the stream
 * watches it for a client that disconnects. */

#include "agent/http/response-stream.h"

#include "agent/http/http-reply.h"
#include "common/cleanup.h"
#include "common/list.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>

enum {
        BLOCK_SIZE = 16 * 1024
};

struct ResponseStream {
        ResponseStreams *streams;
        struct MHD_Connection *http;
        HttpConnection *connection;
        const ResponseStreamKind *kind;
        void *source;
        sd_event_source *hangup; /* the client disconnects while there is nothing to send */
        bool is_suspended;
        bool is_yielding; /* suspended for one turn only */
        bool is_aborted;
        ResponseStream *previous, *next;
};

static void schedule_mhd_run(const ResponseStreams *streams) {
        streams->schedule_run(streams->userdata);
}

static int on_client_hangup(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        response_stream_abort(userdata);
        return 0;
}

static void watch_client_hangup(ResponseStream *stream) {
        int r;

        if (stream->hangup)
                r = sd_event_source_set_enabled(stream->hangup, SD_EVENT_ON);
        else
                r = sd_event_add_io(stream->streams->event, &stream->hangup,
                                    http_connection_fd(stream->connection), EPOLLRDHUP,
                                    on_client_hangup, stream);
        if (r < 0)
                stream->is_aborted = true; /* otherwise it would never end */
}

static void suspend_response_stream(ResponseStream *stream, bool is_yielding) {
        stream->is_suspended = true;
        stream->is_yielding = is_yielding;
        MHD_suspend_connection(stream->http);
        if (!is_yielding)
                watch_client_hangup(stream);
        if (is_yielding || stream->is_aborted)
                schedule_mhd_run(stream->streams);
}

static void resume_response_stream(ResponseStream *stream) {
        if (!stream->is_suspended)
                return;
        stream->is_suspended = stream->is_yielding = false;
        if (stream->hangup)
                (void) sd_event_source_set_enabled(stream->hangup, SD_EVENT_OFF);
        MHD_resume_connection(stream->http);
        schedule_mhd_run(stream->streams);
}

ResponseStream *response_stream_next(const ResponseStreams *streams, const ResponseStreamKind *kind,
                                     const ResponseStream *previous) {
        ResponseStream *stream = previous ? previous->next : streams->first;

        while (stream && stream->kind != kind)
                stream = stream->next;
        return stream;
}

void *response_stream_source(const ResponseStream *stream) {
        return stream->source;
}

void response_stream_wake(ResponseStream *stream) {
        resume_response_stream(stream);
}

void response_stream_abort(ResponseStream *stream) {
        stream->is_aborted = true;
        /* If libmicrohttpd waits for the client to read, this ends the wait. */
        (void) shutdown(http_connection_fd(stream->connection), SHUT_RDWR);
        resume_response_stream(stream);
}

void response_streams_resume_yielding(ResponseStreams *streams) {
        list_foreach(stream, streams->first)
                if (stream->is_yielding || (stream->is_suspended && stream->is_aborted))
                        resume_response_stream(stream);
}

void response_streams_abort_all(ResponseStreams *streams) {
        list_foreach(stream, streams->first)
                response_stream_abort(stream);
}

static ssize_t read_response_stream(void *userdata, uint64_t position, char *buffer, size_t size) {
        ResponseStream *stream = userdata;
        ssize_t n;

        if (stream->is_aborted)
                return MHD_CONTENT_READER_END_WITH_ERROR;
        n = stream->kind->read(stream->source, buffer, size);
        if (n > 0) {
                if (!stream->kind->is_unbounded)
                        http_connection_set_deadline(stream->connection);
                return n;
        }
        if (n == -ENODATA)
                return MHD_CONTENT_READER_END_OF_STREAM;
        if (n != 0 && n != -EAGAIN)
                return MHD_CONTENT_READER_END_WITH_ERROR;
        suspend_response_stream(stream, n == -EAGAIN);
        return 0;
}

static void free_response_stream(void *userdata) {
        ResponseStream *stream = userdata;
        ResponseStreams *streams = stream->streams;

        if (stream->previous)
                stream->previous->next = stream->next;
        else
                streams->first = stream->next;
        if (stream->next)
                stream->next->previous = stream->previous;
        if (stream->kind->is_unbounded)
                streams->n_unbounded--;
        sd_event_source_disable_unref(stream->hangup);
        stream->kind->free(stream->source);
        free(stream);
}

static ResponseStream *response_stream_new(ResponseStreams *streams, struct MHD_Connection *http,
                                           const ResponseStreamKind *kind, void *source) {
        ResponseStream *stream = calloc(1, sizeof(*stream));

        if (!stream)
                return NULL;
        *stream = (ResponseStream){
                .streams = streams,
                .http = http,
                .connection = http_connection_of(http),
                .kind = kind,
                .source = source,
                .next = streams->first,
        };
        if (stream->next)
                stream->next->previous = stream;
        streams->first = stream;
        if (kind->is_unbounded) {
                streams->n_unbounded++;
                http_connection_clear_deadline(stream->connection);
        }
        return stream;
}

enum MHD_Result response_stream_start(ResponseStreams *streams, struct MHD_Connection *http,
                                      const ResponseStreamKind *kind, void *source_consume,
                                      ResponseStream **ret) {
        unsigned max = UNBOUNDED_STREAMS_MAX + (http_is_root(http) ? UNBOUNDED_STREAMS_OF_ROOT : 0);
        struct MHD_Response *response;
        ResponseStream *stream;
        enum MHD_Result result;

        if (kind->is_unbounded && streams->n_unbounded >= max) {
                kind->free(source_consume);
                return http_reply_error(http, MHD_HTTP_SERVICE_UNAVAILABLE,
                                        "too many clients watch or follow (at most %u)", max);
        }
        stream = response_stream_new(streams, http, kind, source_consume);
        if (!stream) {
                kind->free(source_consume);
                return MHD_NO;
        }
        response = MHD_create_response_from_callback(
                MHD_SIZE_UNKNOWN, BLOCK_SIZE, read_response_stream, stream, free_response_stream);
        if (!response) {
                free_response_stream(stream);
                return MHD_NO;
        }
        if (ret)
                *ret = stream;
        (void) MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, kind->content_type);
        result = MHD_queue_response(http, MHD_HTTP_OK, response);
        MHD_destroy_response(response);
        return result;
}
