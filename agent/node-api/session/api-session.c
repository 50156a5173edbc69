/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/node-api/session/api-session.h"

#include "agent/node-api/process/agent-request.h"
#include "agent/node-api/session/session-result.h"
#include "common/channels.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/event-source.h"

#include <sys/epoll.h>

#define STREAMS_USEC (30 * USEC_PER_SEC)  /* for the client to open its streams */
#define LINGER_USEC  (300 * USEC_PER_SEC) /* for the client to close, after the end was sent */

struct Session {
        sd_event *event;
        SessionOptions options;
        char *agent_socket, *agent_path, *credential;
        void (*on_over)(void *userdata);
        void *userdata;

        StreamSocket *client;
        SessionWire *wire;
        AgentRequest *request;
        ByteQueue early_input;  /* until the shim is connected */
        unsigned width, height; /* of the terminal, until the shim is connected */
        bool is_input_over;

        int shim_fd;
        bool is_held; /* the shim holds the command until the client's streams are open */
        Channels *shim;
        sd_event_source *shim_source;

        sd_event_source *deadline;
        sd_event_source *end_source; /* ends the session from the loop instead of from a callback */
        bool is_ready;               /* the client's streams are open */
        bool is_finished;            /* the result was sent */
};

/* ---- the end ---- */

static int on_session_end(sd_event_source *source, void *userdata) {
        Session *session = userdata;

        session->on_over(session->userdata);
        return 0;
}

static void schedule_session_end(Session *session) {
        (void) sd_event_source_set_enabled(session->end_source, SD_EVENT_ONESHOT);
}

static int on_session_deadline(sd_event_source *source, uint64_t usec, void *userdata) {
        schedule_session_end(userdata);
        return 0;
}

static int set_session_deadline(Session *session, uint64_t usec) {
        session->deadline = sd_event_source_disable_unref(session->deadline);
        return sd_event_add_time_relative(session->event, &session->deadline, CLOCK_MONOTONIC, usec,
                                          0, on_session_deadline, session);
}

static void disconnect_session_shim(Session *session) {
        session->shim_source = sd_event_source_disable_unref(session->shim_source);
        session->shim = channels_free(session->shim);
        session->shim_fd = close_fd(session->shim_fd);
}

/* A client may read slowly, for example on a stopped terminal: its time counts from the last byte
 * written. */
static int linger_for_client(Session *session) {
        if (byte_queue_length(stream_socket_queue(session->client)) > 0)
                return 0;
        return set_session_deadline(session, LINGER_USEC);
}

/* The client reads the result and closes the connection; further data from it is dropped. Closing
 * first could make the kernel discard the result. */
static void finish_session(Session *session, const char *status) {
        cleanup_free char *failure = NULL;
        int r;

        if (session->is_finished)
                return;
        session->is_finished = true;
        failure = session_result_failure(status);
        r = session_wire_finish(session->wire, status, failure);
        stream_socket_pause_reading(session->client, false);
        if (r >= 0)
                r = linger_for_client(session);
        if (r < 0)
                schedule_session_end(session);
}

static void fail_session(Session *session, const char *message) {
        cleanup_free char *status = session_result_of_error(message);

        if (status)
                finish_session(session, status);
        else
                schedule_session_end(session);
}

/* ---- the shim ---- */

static void update_session(Session *session) {
        bool input_is_full =
                session->shim ? channels_queued(session->shim) >= CHANNELS_QUEUE_MAX
                              : byte_queue_length(&session->early_input) >= STREAM_QUEUE_HIGH;
        bool client_is_full, reads_shim;

        stream_socket_pause_reading(session->client, input_is_full && !session->is_finished);
        if (!session->shim)
                return;
        client_is_full = stream_queue_is_full(stream_socket_queue(session->client));
        channels_hold(session->shim, client_is_full);
        reads_shim = !client_is_full && channels_wants_read(session->shim);
        (void) sd_event_source_set_io_events(
                session->shim_source,
                (reads_shim ? EPOLLIN : 0U) |
                        (channels_wants_write(session->shim) ? EPOLLOUT : 0U));
        (void) sd_event_source_set_enabled(
                session->shim_source,
                reads_shim || channels_wants_write(session->shim) ? SD_EVENT_ON : SD_EVENT_OFF);
}

static void on_shim_message(unsigned char channel, const char *data, size_t length,
                            void *userdata) {
        Session *session = userdata;
        cleanup_free char *status = NULL;
        int r = 0;

        if (session->is_finished)
                return;
        if (channel == CHANNEL_OUTPUT || channel == CHANNEL_ERROR) {
                r = session_wire_send(session->wire,
                                      channel == CHANNEL_OUTPUT ? SESSION_STANDARD_OUTPUT
                                                                : SESSION_STANDARD_ERROR,
                                      data, length);
        } else if (channel == CHANNEL_STATUS) {
                status = strndup(data, length);
                if (status)
                        finish_session(session, status);
        }
        if (r < 0)
                schedule_session_end(session);
        /* Messages of the shim that have been read are still processed; no more are read. */
        if (stream_queue_is_full(stream_socket_queue(session->client)))
                channels_hold(session->shim, true);
}

static int on_session_shim(sd_event_source *source, int fd, uint32_t events, void *userdata) {
        Session *session = userdata;
        int r = channels_read(session->shim);

        /* A write fails if the shim has exited, but data that it sent before must still be read. */
        if (r >= 0)
                (void) channels_write(session->shim);
        if (r < 0 || session->is_finished || channels_is_closed_by_peer(session->shim)) {
                disconnect_session_shim(session);
                fail_session(session, "the connection to the container was closed");
        }
        update_session(session);
        return 0;
}

static int send_shim_size(Session *session) {
        char text[64];
        int n = snprintf(text, sizeof(text), "{\"Width\":%u,\"Height\":%u}", session->width,
                         session->height);

        if (session->width == 0 || !session->shim)
                return 0;
        return channels_send(session->shim, CHANNEL_RESIZE, text, (size_t) n);
}

static int send_shim_input_end(Session *session) {
        static const char input = CHANNEL_INPUT;

        if (!session->is_input_over || !session->shim)
                return 0;
        return channels_send(session->shim, CHANNEL_CLOSE, &input, 1);
}

/* The data before it. */
static int send_early_input(Session *session) {
        int r = session->is_held ? channels_send(session->shim, CHANNEL_START, "", 0) : 0;

        if (r >= 0)
                r = send_shim_size(session);

        if (r >= 0 && byte_queue_length(&session->early_input) > 0)
                r = channels_send(session->shim, CHANNEL_INPUT,
                                  byte_queue_bytes(&session->early_input),
                                  byte_queue_length(&session->early_input));
        byte_queue_done(&session->early_input);
        return r < 0 ? r : send_shim_input_end(session);
}

static int connect_session_shim(Session *session, int fd) {
        int r;

        session->shim_fd = fd;
        r = channels_new(fd, /* is_client= */ true, on_shim_message, session, &session->shim);
        if (r < 0)
                return r;
        r = sd_event_add_io(session->event, &session->shim_source, fd, EPOLLIN, on_session_shim,
                            session);
        if (r < 0)
                return r;
        return send_early_input(session);
}

static void on_session_reply(const AgentReply *reply, void *userdata) {
        Session *session = userdata;
        int r;

        session->request = NULL;
        if (reply->error < 0 || reply->fd < 0) {
                fail_session(session, reply->error < 0 ? strerror(-reply->error) : reply->body);
                return;
        }
        r = connect_session_shim(session, reply->fd);
        if (r < 0)
                fail_session(session, strerror(-r));
        update_session(session);
}

/* ---- the client ---- */

static int ask_for_shim(Session *session) {
        AgentRequestSpec spec = { .socket_path = session->agent_socket,
                                  .kind = AGENT_WEBSOCKET,
                                  .path = session->agent_path,
                                  .credential = session->credential,
                                  .waits_for_agent = true };

        return agent_request_start(session->event, &spec, on_session_reply, session,
                                   &session->request);
}

static void on_wire_ready(void *userdata) {
        Session *session = userdata;
        int r;

        session->is_ready = true;
        session->deadline = sd_event_source_disable_unref(session->deadline);
        r = session->is_held ? connect_session_shim(session, session->shim_fd)
                             : ask_for_shim(session);
        if (r < 0)
                fail_session(session, strerror(-r));
        update_session(session);
}

static void on_wire_input(const char *data, size_t length, void *userdata) {
        Session *session = userdata;
        int r;

        if (session->is_finished)
                return;
        r = session->shim
                    ? channels_send(session->shim, CHANNEL_INPUT, data, length)
                    : byte_queue_append(&session->early_input, STREAM_QUEUE_MAX, data, length);
        if (r < 0)
                schedule_session_end(session);
}

static void on_wire_input_end(void *userdata) {
        Session *session = userdata;

        session->is_input_over = true;
        if (send_shim_input_end(session) < 0)
                schedule_session_end(session);
}

static void on_wire_resize(unsigned width, unsigned height, void *userdata) {
        Session *session = userdata;

        session->width = width;
        session->height = height;
        if (send_shim_size(session) < 0)
                schedule_session_end(session);
}

static const SessionWireHandlers session_handlers_of_wire = { on_wire_ready, on_wire_input,
                                                              on_wire_input_end, on_wire_resize };

static void receive_from_session_client(Session *session, const char *data, size_t length) {
        int r = session_wire_receive(session->wire, data, length);

        /* The client is gone. Whether it closed the connection properly makes no difference to the
         * command. */
        if (r != 0)
                schedule_session_end(session);
        update_session(session);
}

static void on_session_client_data(const char *data, size_t length, void *userdata) {
        receive_from_session_client(userdata, data, length);
}

static void on_session_client_end(void *userdata) {
        schedule_session_end(userdata);
}

static void on_session_client_written(void *userdata) {
        Session *session = userdata;

        if (session->is_finished && linger_for_client(session) < 0)
                schedule_session_end(session);
        update_session(session);
}

static void on_session_client_error(int error, void *userdata) {
        schedule_session_end(userdata);
}

static const StreamSocketHandlers session_client_handlers = { on_session_client_data,
                                                              on_session_client_end,
                                                              on_session_client_written,
                                                              on_session_client_error };

static int start_session(Session *session, const ClientSessionSpec *spec) {
        int r = event_add_disabled_defer(session->event, &session->end_source,
                                         SD_EVENT_PRIORITY_NORMAL, on_session_end, session);

        if (r < 0)
                return r;
        r = set_session_deadline(session, STREAMS_USEC);
        if (r < 0)
                return r;
        r = stream_socket_new_client(session->event, &spec->client, &session_client_handlers,
                                     session, &session->client);
        if (r < 0)
                return r;
        r = session_wire_new(spec->protocol, &spec->options, &session_handlers_of_wire, session,
                             stream_socket_queue(session->client), &session->wire);
        if (r < 0)
                return r;
        r = session_wire_start(session->wire);
        if (r < 0)
                return r;
        if (spec->client.early_length > 0)
                receive_from_session_client(session, spec->client.early, spec->client.early_length);
        stream_socket_update(session->client);
        return 0;
}

int session_new(const ClientSessionSpec *spec, Session **ret) {
        cleanup_with(session_freep) Session *session = calloc(1, sizeof(*session));
        int r;

        if (!session) {
                close_fd(spec->shim_fd);
                return -ENOMEM;
        }
        session->event = sd_event_ref(spec->event);
        session->options = spec->options;
        session->on_over = spec->on_over;
        session->userdata = spec->userdata;
        session->shim_fd = spec->shim_fd;
        session->is_held = spec->shim_fd >= 0;
        session->agent_socket = strdup(spec->agent_socket);
        session->agent_path = strdup(spec->agent_path);
        session->credential = strdup(strna(spec->credential));
        if (!session->agent_socket || !session->agent_path || !session->credential)
                return -ENOMEM;
        r = start_session(session, spec);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(session);
        return 0;
}

Session *session_free(Session *session) {
        if (!session)
                return NULL;
        agent_request_cancel(session->request);
        disconnect_session_shim(session);
        sd_event_source_disable_unref(session->deadline);
        sd_event_source_disable_unref(session->end_source);
        session_wire_free(session->wire);
        stream_socket_free(session->client);
        byte_queue_done(&session->early_input);
        sd_event_unref(session->event);
        free(session->agent_socket);
        free(session->agent_path);
        free(session->credential);
        free(session);
        return NULL;
}
