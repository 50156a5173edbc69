/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/http/http-server-private.h"

#include "common/cleanup.h"

#include <sys/epoll.h>
#include <sys/socket.h>

/* A stream is pulled: microhttpd asks for bytes when the client has room for them, so a slow client
 * costs nothing but its place. When there is nothing to say, the connection is suspended. Then
 * microhttpd does not look at the socket, and we watch ourselves for a client that goes away. */

enum {
        BLOCK_SIZE = 16 * 1024
};

static int on_client_hangup(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        response_stream_abort(userdata);
        return 0;
}

static void watch_client_hangup(ResponseStream *stream) {
        int r;

        if (stream->hangup)
                r = sd_event_source_set_enabled(stream->hangup, SD_EVENT_ON);
        else
                r = sd_event_add_io(stream->server->event, &stream->hangup, stream->connection->fd,
                                    EPOLLRDHUP, on_client_hangup, stream);
        if (r < 0)
                stream->is_aborted = true; /* better no stream than one that nobody ends */
}

static void suspend_response_stream(ResponseStream *stream, bool is_yielding) {
        stream->is_suspended = true;
        stream->is_yielding = is_yielding;
        MHD_suspend_connection(stream->http);
        if (!is_yielding)
                watch_client_hangup(stream);
        if (is_yielding || stream->is_aborted)
                http_server_schedule_run(stream->server);
}

static void resume_response_stream(ResponseStream *stream) {
        if (!stream->is_suspended)
                return;
        stream->is_suspended = stream->is_yielding = false;
        if (stream->hangup)
                (void) sd_event_source_set_enabled(stream->hangup, SD_EVENT_OFF);
        MHD_resume_connection(stream->http);
        http_server_schedule_run(stream->server);
}

void response_stream_wake(ResponseStream *stream) {
        resume_response_stream(stream);
}

void response_stream_abort(ResponseStream *stream) {
        stream->is_aborted = true;
        /* microhttpd may be waiting for the client to read; this wakes it. */
        (void) shutdown(stream->connection->fd, SHUT_RDWR);
        resume_response_stream(stream);
}

void response_streams_resume_yielding(HttpServer *server) {
        for (ResponseStream *stream = server->streams; stream; stream = stream->next)
                if (stream->is_yielding || (stream->is_suspended && stream->is_aborted))
                        resume_response_stream(stream);
}

void response_streams_abort_all(HttpServer *server) {
        for (ResponseStream *stream = server->streams; stream; stream = stream->next)
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
        HttpServer *server = stream->server;

        if (stream->previous)
                stream->previous->next = stream->next;
        else
                server->streams = stream->next;
        if (stream->next)
                stream->next->previous = stream->previous;
        if (stream->kind->is_unbounded)
                server->n_unbounded_streams--;
        sd_event_source_disable_unref(stream->hangup);
        stream->kind->free(stream->source);
        free(stream);
}

static ResponseStream *response_stream_new(HttpServer *server, struct MHD_Connection *http,
                                           const ResponseStreamKind *kind, void *source) {
        ResponseStream *stream = calloc(1, sizeof(*stream));

        if (!stream)
                return NULL;
        *stream = (ResponseStream){
                .server = server,
                .http = http,
                .connection = http_connection_of(http),
                .kind = kind,
                .source = source,
                .next = server->streams,
        };
        if (stream->next)
                stream->next->previous = stream;
        server->streams = stream;
        if (kind->is_unbounded) {
                server->n_unbounded_streams++;
                http_connection_clear_deadline(stream->connection);
        }
        return stream;
}

enum MHD_Result response_stream_start(HttpServer *server, struct MHD_Connection *http,
                                      const ResponseStreamKind *kind, void *source_consume,
                                      ResponseStream **ret) {
        struct MHD_Response *response;
        ResponseStream *stream;
        enum MHD_Result result;

        if (kind->is_unbounded && server->n_unbounded_streams >= UNBOUNDED_STREAMS_MAX) {
                kind->free(source_consume);
                return http_reply_error(http, MHD_HTTP_SERVICE_UNAVAILABLE,
                                        "too many clients watch or follow already (%d)",
                                        UNBOUNDED_STREAMS_MAX);
        }
        stream = response_stream_new(server, http, kind, source_consume);
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
