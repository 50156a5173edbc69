/* SPDX-License-Identifier: Apache-2.0 */

/* A client's watch: lines of the agent's watch are converted to the client's events as fast as the
 * client reads, in the reply's body or in WebSocket messages. Nothing is queued here: the agent
 * ends the watch of a client that is too slow, and the client lists again. */

#include "agent/node-api/kubernetes/client-watch.h"
#include "agent/node-api/kubernetes/object-poll.h"
#include "agent/node-api/process/node-api-private.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/json-text.h"
#include "common/line-buffer.h"

#include <inttypes.h>
#include <sys/epoll.h>
#include <sys/socket.h>

enum {
        WATCH_BLOCK_SIZE = 16 * 1024,
        WATCH_LINE_MAX = 8 * 1024 * 1024, /* limit for an object from the agent */
        WATCH_TIMEOUT_SEC_MAX = 24 * 3600,
};

typedef struct AgentWatch {
        ApiConnection *connection;
        struct MHD_Connection *http;
        WatchSocket *socket; /* NULL: the events are the reply's body */
        ClientWatch watch;
        int fd;                  /* for the agent's watch; -EBADF: none */
        sd_event_source *source; /* data from the agent; off while the client reads */
        ObjectPoll *poll;        /* for kinds that the agent cannot watch; or NULL */
        sd_event_source *timeout;
        LineBuffer in; /* lines from the agent */
        char *out;     /* events; NULL: none is pending */
        size_t out_length, out_sent;
        bool is_over, has_finished;
} AgentWatch;

static void watch_stream_free(void *userdata) {
        AgentWatch *stream = userdata;

        sd_event_source_disable_unref(stream->source);
        sd_event_source_disable_unref(stream->timeout);
        object_poll_free(stream->poll);
        close_fd(stream->fd);
        line_buffer_done(&stream->in);
        free(stream->out);
        client_watch_done(&stream->watch);
        free(stream);
}

static void wake_watch_client(AgentWatch *stream) {
        if (stream->socket)
                watch_socket_update(stream->socket);
        else
                api_connection_resume(stream->connection);
}

static int on_watch_stream_readable(sd_event_source *source, int fd, uint32_t events,
                                    void *userdata) {
        AgentWatch *stream = userdata;

        (void) sd_event_source_set_enabled(source, SD_EVENT_OFF);
        wake_watch_client(stream);
        return 0;
}

/* ---- events ---- */

static size_t send_watch_events(AgentWatch *stream, char *buffer, size_t size) {
        size_t n = MIN(size, stream->out_length - stream->out_sent);

        if (n > 0)
                memcpy(buffer, stream->out + stream->out_sent, n);
        stream->out_sent += n;
        if (stream->out_sent < stream->out_length)
                return n;
        free(TAKE_PTR(stream->out));
        stream->out_length = stream->out_sent = 0;
        return n;
}

/* Written data is pending. */
static int keep_watch_events(AgentWatch *stream, FILE *out, char **text, const size_t *length) {
        if (!memstream_finish(out, text))
                return -ENOMEM;
        if (*length > 0) {
                stream->out = TAKE_PTR(*text);
                stream->out_length = *length;
        }
        return 0;
}

/* The agent's first pending line; 0: no complete line. */
static int take_agent_line(AgentWatch *stream, FILE *out) {
        const char *line;
        size_t length;
        int r;

        if (!line_buffer_take(&stream->in, &line, &length))
                return 0;
        r = client_watch_take_line(&stream->watch, line, length, now_realtime_usec(), out);
        return r < 0 ? r : 1;
}

/* Converts lines until there is an event to send, or no complete line is left. 0 or -errno. */
static int take_agent_lines(AgentWatch *stream) {
        cleanup_free char *text = NULL;
        size_t length;
        FILE *out = open_memstream(&text, &length);
        int r = 1;

        if (!out)
                return -ENOMEM;
        while (r > 0 && ftell(out) <= 0)
                r = take_agent_line(stream, out);
        if (r == 0 && stream->is_over && !stream->has_finished) {
                client_watch_finish(&stream->watch, out);
                stream->has_finished = true;
        }
        return keep_watch_events(stream, out, &text, &length) < 0 ? -ENOMEM : r;
}

/* 1; 0: nothing has arrived. */
static int receive_agent_lines(AgentWatch *stream) {
        char bytes[WATCH_BLOCK_SIZE];
        ssize_t n = stream->fd >= 0 ? recv(stream->fd, bytes, sizeof(bytes), MSG_DONTWAIT) : -1;
        int r;

        if (stream->fd < 0 || (n < 0 && (errno == EAGAIN || errno == EINTR)))
                return 0;
        if (n < 0)
                return -errno;
        if (n == 0)
                return -ECONNRESET;
        r = line_buffer_push(&stream->in, bytes, (size_t) n, WATCH_LINE_MAX);
        return r < 0 ? r : 1;
}

/* 1: there are events to send; 0: none yet, and the loop will report the next ones; -errno: the
 * watch has ended. */
static int fill_watch_events(AgentWatch *stream) {
        while (!stream->out) {
                int r = take_agent_lines(stream);

                if (stream->out)
                        break;
                if (r < 0 || stream->is_over)
                        return -ECONNRESET;
                r = receive_agent_lines(stream);
                if (r == 0)
                        return stream->source
                                       ? sd_event_source_set_enabled(stream->source, SD_EVENT_ON)
                                       : 0;
                stream->is_over = r < 0; /* the agent's watch has ended: the client lists again */
        }
        return 1;
}

static ssize_t read_watch_stream(void *userdata, uint64_t position, char *buffer, size_t size) {
        AgentWatch *stream = userdata;
        int r;

        if (stream->connection->is_gone)
                return MHD_CONTENT_READER_END_WITH_ERROR;
        r = fill_watch_events(stream);
        if (r < 0)
                return api_connection_end_body(stream->connection);
        if (r > 0)
                return (ssize_t) send_watch_events(stream, buffer, size);
        api_connection_suspend(stream->connection, stream->http);
        return 0;
}

static int take_watch_events(void *userdata, char **ret_text, size_t *ret_length) {
        AgentWatch *stream = userdata;
        int r = fill_watch_events(stream);

        if (r <= 0)
                return r;
        *ret_text = TAKE_PTR(stream->out);
        *ret_length = stream->out_length;
        stream->out_length = stream->out_sent = 0;
        return 1;
}

static void set_watch_socket(void *userdata, WatchSocket *socket) {
        AgentWatch *stream = userdata;

        stream->socket = socket;
}

static int on_watch_timeout(sd_event_source *source, uint64_t usec, void *userdata) {
        AgentWatch *stream = userdata;

        stream->is_over = true;
        wake_watch_client(stream);
        return 0;
}

/* ---- the request ---- */

ObjectVersions *api_object_versions(NodeApi *server, const ServedResource *resource) {
        ObjectVersions **versions = &server->versions[resource - served_resources];

        if (!*versions)
                *versions = object_versions_new(now_realtime_usec());
        return *versions;
}

static bool is_polled(const ServedResource *resource) {
        return resource->agent_path && !resource->has_agent_watch;
}

/* A number in the query; 0 without one. */
static int read_watch_number(const ApiRequest *request, const char *name, uint64_t *ret,
                             Error *reterr) {
        const char *text = api_parameter(request->http, name);
        char *end;

        *ret = 0;
        if (!text || !*text)
                return 0;
        errno = 0;
        *ret = strtoull(text, &end, 10);
        if (errno != 0 || *end != '\0' || text[0] == '-')
                return error_setf(reterr, EINVAL, "invalid %s: '%s'", name, text);
        return 0;
}

static int copy_watch_place(ClientWatch *watch, const ResourcePath *path) {
        watch->namespace = path->namespace ? strdup(path->namespace) : NULL;
        watch->name = path->name ? strdup(path->name) : NULL;
        watch->query.namespace = watch->namespace;
        watch->query.name = watch->name;
        return (path->namespace && !watch->namespace) || (path->name && !watch->name) ? -ENOMEM : 0;
}

static int read_client_watch(ApiRequest *request, const ServedResource *resource,
                             const ResourcePath *path, const ObjectForm *form, ClientWatch *watch,
                             Error *reterr) {
        int r = api_read_selectors(request, resource, &watch->query, reterr);

        if (r < 0)
                return r;
        r = read_watch_number(request, "resourceVersion", &watch->since, reterr);
        if (r < 0)
                return r;
        if (request->server->settings.node_created) {
                watch->node_created = strdup(request->server->settings.node_created);
                if (!watch->node_created)
                        return -ENOMEM;
        }
        r = copy_watch_place(watch, path);
        if (r < 0)
                return r;
        watch->resource = resource;
        watch->form = *form;
        watch->has_end_of_list = api_is_flag_true(request, "sendInitialEvents");
        watch->has_bookmarks = api_is_flag_true(request, "allowWatchBookmarks");
        if (watch->has_end_of_list)
                watch->since = 0;
        watch->versions = api_object_versions(request->server, resource);
        return watch->versions ? client_watch_start(watch) : -ENOMEM;
}

/* Takes the objects of a list; NULL: none. */
static int take_watched_list(AgentWatch *stream, const json_t *objects) {
        cleanup_free char *text = NULL;
        size_t length;
        FILE *out = open_memstream(&text, &length);
        int r;

        if (!out)
                return -ENOMEM;
        r = client_watch_take_list(&stream->watch, objects, now_realtime_usec(), out);
        return keep_watch_events(stream, out, &text, &length) < 0 ? -ENOMEM : r;
}

/* If a client has not read the events of one list, the events of the next list contain the
 * differences. */
static void on_polled_objects(const json_t *objects, void *userdata) {
        AgentWatch *stream = userdata;

        if (!objects || (!stream->out && take_watched_list(stream, objects) < 0))
                stream->is_over = true;
        if (stream->out || stream->is_over)
                wake_watch_client(stream);
}

static int start_watch_poll(const ApiRequest *request, AgentWatch *stream) {
        const NodeApi *server = request->server;

        return object_poll_new(&(ObjectPollSpec){ .event = server->event,
                                                  .agent_socket = server->agent_socket,
                                                  .credential = request->credential,
                                                  .resource = stream->watch.resource,
                                                  .body_max = API_LIST_BYTES_MAX,
                                                  .on_objects = on_polled_objects,
                                                  .userdata = stream },
                               &stream->poll);
}

/* The agent's watch, lists of kinds that it cannot watch, or nothing for kinds that never exist on
 * a lone node. */
static int start_watch_input(ApiRequest *request, AgentWatch *stream) {
        int r;

        if (!stream->watch.resource->agent_path)
                return take_watched_list(stream, NULL);
        if (is_polled(stream->watch.resource))
                return start_watch_poll(request, stream);
        stream->fd = TAKE_FD(request->reply_fd);
        r = line_buffer_push(&stream->in, request->reply_body, request->reply_length,
                             WATCH_LINE_MAX);
        if (r < 0)
                return r;
        r = sd_event_add_io(request->server->event, &stream->source, stream->fd, EPOLLIN,
                            on_watch_stream_readable, stream);
        if (r < 0)
                return r;
        return sd_event_source_set_enabled(stream->source, SD_EVENT_OFF);
}

static int start_watch_timeout(ApiRequest *request, AgentWatch *stream, Error *reterr) {
        uint64_t seconds;
        int r = read_watch_number(request, "timeoutSeconds", &seconds, reterr);

        if (r < 0 || seconds == 0)
                return r;
        return sd_event_add_time_relative(request->server->event, &stream->timeout, CLOCK_MONOTONIC,
                                          MIN(seconds, (uint64_t) WATCH_TIMEOUT_SEC_MAX) *
                                                  USEC_PER_SEC,
                                          0, on_watch_timeout, stream);
}

static ApiStepResult reply_watch_stream(ApiRequest *request, AgentWatch *stream_consume) {
        struct MHD_Response *response = MHD_create_response_from_callback(
                MHD_SIZE_UNKNOWN, WATCH_BLOCK_SIZE, read_watch_stream, stream_consume,
                watch_stream_free);

        if (!response) {
                watch_stream_free(stream_consume);
                return API_STEP_ABORT;
        }
        (void) MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, "application/json");
        return api_queue_reply(request, MHD_HTTP_OK, response);
}

static ApiStepResult upgrade_watch_stream(ApiRequest *request, AgentWatch *stream_consume) {
        return api_upgrade_watch(request, &(WatchEvents){ .take = take_watch_events,
                                                          .set_socket = set_watch_socket,
                                                          .free = watch_stream_free,
                                                          .userdata = stream_consume });
}

/* Called when the agent has replied, or for a resource that the agent does not have. */
static ApiStepResult start_watch_stream(ApiRequest *request, const ServedResource *resource,
                                        const ResourcePath *path, const ObjectForm *form) {
        cleanup_error Error error = ERROR_NULL;
        AgentWatch *stream = calloc(1, sizeof(*stream));
        int r;

        if (!stream)
                return API_STEP_ABORT;
        stream->connection = request->connection;
        stream->http = request->http;
        stream->fd = -EBADF;
        r = read_client_watch(request, resource, path, form, &stream->watch, &error);
        if (r >= 0)
                r = start_watch_input(request, stream);
        if (r >= 0)
                r = start_watch_timeout(request, stream, &error);
        if (r >= 0)
                return request->is_upgrade ? upgrade_watch_stream(request, stream)
                                           : reply_watch_stream(request, stream);
        watch_stream_free(stream);
        return api_reply_text(request,
                              r == -EINVAL ? MHD_HTTP_BAD_REQUEST : MHD_HTTP_INTERNAL_SERVER_ERROR,
                              error_message(&error, r));
}

static ApiStepResult ask_agent_to_watch(ApiRequest *request, const ServedResource *resource) {
        char path[64];

        (void) snprintf(path, sizeof(path), "%s?watch=1&bookmark=1", resource->agent_path);
        return api_request_ask_agent(request,
                                     &(AgentRequestSpec){ .kind = AGENT_STREAM, .path = path });
}

ApiStepResult api_handle_watch(ApiRequest *request, const ServedResource *resource,
                               const ResourcePath *path, const ObjectForm *form) {
        cleanup_error Error error = ERROR_NULL;
        const ObjectVersions *versions = api_object_versions(request->server, resource);
        uint64_t since;
        int r = read_watch_number(request, "resourceVersion", &since, &error);

        if (r < 0)
                return api_reply_text(request, MHD_HTTP_BAD_REQUEST, error_message(&error, r));
        if (versions && since > 0 && !object_versions_reach(versions, since))
                return api_replyf(request, MHD_HTTP_GONE,
                                  "too old resource version: %" PRIu64 " (%" PRIu64 ")", since,
                                  object_versions_latest(versions));
        if (!request->has_reply && resource->has_agent_watch)
                return ask_agent_to_watch(request, resource);
        if (request->has_reply &&
            (request->reply_error < 0 || request->reply_status != MHD_HTTP_OK))
                return api_reply_agent_error(request);
        return start_watch_stream(request, resource, path, form);
}
