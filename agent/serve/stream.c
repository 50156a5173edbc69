/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/serve/serve-private.h"

#include "common/cleanup.h"

#include <sys/epoll.h>
#include <sys/socket.h>

/* A stream is pulled: microhttpd asks for bytes when the client has room for them, so a slow client
 * costs nothing but its place. When there is nothing to say, the connection is suspended. Then
 * microhttpd does not look at the socket, and we watch ourselves for a client that goes away. */

enum {
        BLOCK_SIZE = 16 * 1024
};

static int on_hangup(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        stream_drop(userdata);
        return 0;
}

static void watch_hangup(Stream *stream) {
        int r;

        if (stream->hangup)
                r = sd_event_source_set_enabled(stream->hangup, SD_EVENT_ON);
        else
                r = sd_event_add_io(stream->serve->event, &stream->hangup, stream->connection->fd,
                                    EPOLLRDHUP, on_hangup, stream);
        if (r < 0)
                stream->is_dropped = true; /* better no stream than one that nobody ends */
}

static void suspend(Stream *stream, bool is_yielding) {
        stream->is_suspended = true;
        stream->is_yielding = is_yielding;
        MHD_suspend_connection(stream->http);
        if (!is_yielding)
                watch_hangup(stream);
        if (is_yielding || stream->is_dropped)
                serve_schedule(stream->serve);
}

static void resume(Stream *stream) {
        if (!stream->is_suspended)
                return;
        stream->is_suspended = stream->is_yielding = false;
        if (stream->hangup)
                (void) sd_event_source_set_enabled(stream->hangup, SD_EVENT_OFF);
        MHD_resume_connection(stream->http);
        serve_schedule(stream->serve);
}

void stream_wake(Stream *stream) {
        resume(stream);
}

void stream_drop(Stream *stream) {
        stream->is_dropped = true;
        /* microhttpd may be waiting for the client to read; this wakes it. */
        (void) shutdown(stream->connection->fd, SHUT_RDWR);
        resume(stream);
}

void streams_on_turn(Serve *serve) {
        for (Stream *stream = serve->streams; stream; stream = stream->next)
                if (stream->is_yielding || (stream->is_suspended && stream->is_dropped))
                        resume(stream);
}

void streams_drop_all(Serve *serve) {
        for (Stream *stream = serve->streams; stream; stream = stream->next)
                stream_drop(stream);
}

static ssize_t on_read(void *userdata, uint64_t position, char *buffer, size_t size) {
        Stream *stream = userdata;
        ssize_t n;

        if (stream->is_dropped)
                return MHD_CONTENT_READER_END_WITH_ERROR;
        n = stream->kind->read(stream->source, buffer, size);
        if (n > 0) {
                if (!stream->kind->is_endless)
                        connection_set_deadline(stream->connection);
                return n;
        }
        if (n == -ENODATA)
                return MHD_CONTENT_READER_END_OF_STREAM;
        if (n != 0 && n != -EAGAIN)
                return MHD_CONTENT_READER_END_WITH_ERROR;
        suspend(stream, n == -EAGAIN);
        return 0;
}

static void on_free(void *userdata) {
        Stream *stream = userdata;
        Serve *serve = stream->serve;

        if (stream->previous)
                stream->previous->next = stream->next;
        else
                serve->streams = stream->next;
        if (stream->next)
                stream->next->previous = stream->previous;
        if (stream->kind->is_endless)
                serve->n_endless--;
        sd_event_source_disable_unref(stream->hangup);
        stream->kind->free(stream->source);
        free(stream);
}

static Stream *stream_new(Serve *serve, struct MHD_Connection *http, const StreamKind *kind,
                          void *source) {
        Stream *stream = calloc(1, sizeof(*stream));

        if (!stream)
                return NULL;
        *stream = (Stream){
                .serve = serve,
                .http = http,
                .connection = connection_of(http),
                .kind = kind,
                .source = source,
                .next = serve->streams,
        };
        if (stream->next)
                stream->next->previous = stream;
        serve->streams = stream;
        if (kind->is_endless) {
                serve->n_endless++;
                connection_clear_deadline(stream->connection);
        }
        return stream;
}

enum MHD_Result stream_answer(Serve *serve, struct MHD_Connection *http, const StreamKind *kind,
                              void *source_consume, Stream **ret) {
        struct MHD_Response *response;
        Stream *stream;
        enum MHD_Result result;

        if (kind->is_endless && serve->n_endless >= STREAMS_MAX) {
                kind->free(source_consume);
                return serve_refuse(http, MHD_HTTP_SERVICE_UNAVAILABLE,
                                    "too many clients watch or follow already (%d)", STREAMS_MAX);
        }
        stream = stream_new(serve, http, kind, source_consume);
        if (!stream) {
                kind->free(source_consume);
                return MHD_NO;
        }
        response = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK_SIZE, on_read, stream,
                                                     on_free);
        if (!response) {
                on_free(stream);
                return MHD_NO;
        }
        if (ret)
                *ret = stream;
        (void) MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, kind->content_type);
        result = MHD_queue_response(http, MHD_HTTP_OK, response);
        MHD_destroy_response(response);
        return result;
}
