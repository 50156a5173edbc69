/* SPDX-License-Identifier: Apache-2.0 */

/* Passes on the agent's replies as they arrive, and descriptors that it has passed. While there is
 * nothing to pass on, the client's connection is suspended; while a client does not read, nothing
 * is read from the agent.
 */

#include "agent/node-api/process/node-api-private.h"
#include "common/cleanup.h"

#include <sys/epoll.h>

enum {
        BLOCK_SIZE = 16 * 1024
};

typedef struct AgentStream {
        ApiConnection *connection;
        struct MHD_Connection *http;
        int fd;
        sd_event_source *source; /* data to pass on; off while the client reads */
        char *start;             /* the data that arrived with the reply's head */
        size_t start_length, start_sent;
} AgentStream;

static void agent_stream_free(void *userdata) {
        AgentStream *stream = userdata;

        sd_event_source_disable_unref(stream->source);
        close_fd(stream->fd);
        free(stream->start);
        free(stream);
}

static int on_agent_stream_readable(sd_event_source *source, int fd, uint32_t events,
                                    void *userdata) {
        AgentStream *stream = userdata;

        (void) sd_event_source_set_enabled(source, SD_EVENT_OFF);
        api_connection_resume(stream->connection);
        return 0;
}

static size_t read_stream_start(AgentStream *stream, char *buffer, size_t size) {
        size_t n = MIN(size, stream->start_length - stream->start_sent);

        memcpy(buffer, stream->start + stream->start_sent, n);
        stream->start_sent += n;
        return n;
}

static ssize_t read_agent_stream(void *userdata, uint64_t position, char *buffer, size_t size) {
        AgentStream *stream = userdata;
        size_t from_start = read_stream_start(stream, buffer, size);
        ssize_t n;

        if (from_start > 0)
                return (ssize_t) from_start;
        if (stream->connection->is_gone)
                return MHD_CONTENT_READER_END_WITH_ERROR;
        n = read(stream->fd, buffer, size);
        if (n > 0)
                return n;
        if (n == 0)
                return api_connection_end_body(stream->connection);
        if (errno != EAGAIN && errno != EINTR)
                return MHD_CONTENT_READER_END_WITH_ERROR;
        if (!stream->source || sd_event_source_set_enabled(stream->source, SD_EVENT_ON) < 0)
                return MHD_CONTENT_READER_END_WITH_ERROR;
        api_connection_suspend(stream->connection, stream->http);
        return 0;
}

static AgentStream *agent_stream_new(ApiRequest *request) {
        AgentStream *stream = calloc(1, sizeof(*stream));
        int r;

        if (!stream)
                return NULL;
        stream->connection = request->connection;
        stream->http = request->http;
        stream->fd = TAKE_FD(request->reply_fd);
        stream->start = TAKE_PTR(request->reply_body);
        stream->start_length = request->reply_length;
        r = sd_event_add_io(request->server->event, &stream->source, stream->fd, EPOLLIN,
                            on_agent_stream_readable, stream);
        if (r >= 0)
                r = sd_event_source_set_enabled(stream->source, SD_EVENT_OFF);
        if (r >= 0 || r == -EPERM) /* a file is always readable */
                return stream;
        agent_stream_free(stream);
        return NULL;
}

ApiStepResult api_reply_descriptor(ApiRequest *request) {
        request->reply_length = 0; /* the byte that came with the descriptor */
        return api_reply_agent_stream(request);
}

ApiStepResult api_reply_agent_stream(ApiRequest *request) {
        AgentStream *stream = agent_stream_new(request);
        struct MHD_Response *response;

        if (!stream)
                return API_STEP_ABORT;
        response = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK_SIZE,
                                                     read_agent_stream, stream, agent_stream_free);
        if (!response) {
                agent_stream_free(stream);
                return API_STEP_ABORT;
        }
        if (request->reply_type[0])
                (void) MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE,
                                               request->reply_type);
        return api_queue_reply(request, MHD_HTTP_OK, response);
}
