/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/node-api/session/watch-socket.h"

#include "agent/node-api/wire/websocket.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/event-source.h"
#include "common/line-buffer.h"

#define LINGER_USEC (30 * USEC_PER_SEC) /* for the client to close, once the watch has ended */

struct WatchSocket {
        sd_event *event;
        WatchEvents events;
        StreamSocket *client;
        WebSocket *socket;
        bool is_over; /* no event follows */
        sd_event_source *update_source, *end_source, *linger_timer;
        void (*on_over)(void *userdata);
        void *userdata;
};

static void schedule_watch_end(WatchSocket *watch) {
        (void) sd_event_source_set_enabled(watch->end_source, SD_EVENT_ONESHOT);
}

static int on_watch_socket_end(sd_event_source *source, void *userdata) {
        WatchSocket *watch = userdata;

        watch->on_over(watch->userdata);
        return 0;
}

static int on_watch_socket_lingered(sd_event_source *source, uint64_t usec, void *userdata) {
        schedule_watch_end(userdata);
        return 0;
}

/* ---- events ---- */

static int send_event_messages(WatchSocket *watch, const char *text, size_t length) {
        while (length > 0) {
                size_t n = text_line_length(text, length);
                int r = websocket_send(watch->socket, true, text, n);

                if (r < 0)
                        return r;
                text += n;
                length -= n;
        }
        return 0;
}

/* The client closes the connection; if this end closed first, the kernel might discard the last
 * events. */
static void close_watch_socket(WatchSocket *watch) {
        watch->is_over = true;
        if (websocket_close(watch->socket) < 0 ||
            sd_event_add_time_relative(watch->event, &watch->linger_timer, CLOCK_MONOTONIC,
                                       LINGER_USEC, 0, on_watch_socket_lingered, watch) < 0)
                schedule_watch_end(watch);
        stream_socket_shut_when_written(watch->client);
}

/* Passes as many events as the client accepts: a slow client delays the agent's watch. */
static void pass_events(WatchSocket *watch) {
        while (!watch->is_over && !stream_queue_is_full(stream_socket_queue(watch->client))) {
                cleanup_free char *text = NULL;
                size_t length = 0;
                int r = watch->events.take(watch->events.userdata, &text, &length);

                if (r > 0)
                        r = send_event_messages(watch, text, length) < 0 ? -ENOBUFS : r;
                if (r == -ENOBUFS)
                        schedule_watch_end(watch);
                if (r < 0)
                        close_watch_socket(watch);
                if (r == 0)
                        break;
        }
        stream_socket_update(watch->client);
}

static int on_watch_socket_update(sd_event_source *source, void *userdata) {
        pass_events(userdata);
        return 0;
}

/* This is deferred, because the caller may not have finished. */
void watch_socket_update(WatchSocket *watch) {
        (void) sd_event_source_set_enabled(watch->update_source, SD_EVENT_ONESHOT);
}

/* ---- the client's side ---- */

static void on_message_start(bool is_text, void *userdata) {
        /* Ignored, together with what follows. */
}

static void on_message_piece(const char *data, size_t length, void *userdata) {
        /* Ignored. */
}

static void on_message_end(void *userdata) {
        /* Ignored. */
}

static const WebSocketHandlers message_handlers = { on_message_start, on_message_piece,
                                                    on_message_end };

static void receive_messages(WatchSocket *watch, const char *data, size_t length) {
        if (websocket_receive(watch->socket, data, length) < 0 ||
            websocket_is_gone(watch->socket)) {
                watch->is_over = true;
                stream_socket_shut_when_written(watch->client);
                schedule_watch_end(watch);
        }
        stream_socket_update(watch->client);
}

static void on_watch_client_data(const char *data, size_t length, void *userdata) {
        receive_messages(userdata, data, length);
}

static void on_watch_client_end(void *userdata) {
        schedule_watch_end(userdata);
}

static void on_watch_client_written(void *userdata) {
        watch_socket_update(userdata);
}

static void on_watch_client_error(int error, void *userdata) {
        schedule_watch_end(userdata);
}

static const StreamSocketHandlers watch_client_handlers = {
        on_watch_client_data, on_watch_client_end, on_watch_client_written, on_watch_client_error
};

/* ---- the start ---- */

static int start_watch_socket(WatchSocket *watch, const ClientStream *client) {
        int r = event_add_disabled_defer(watch->event, &watch->end_source, SD_EVENT_PRIORITY_NORMAL,
                                         on_watch_socket_end, watch);

        if (r < 0)
                return r;
        r = event_add_disabled_defer(watch->event, &watch->update_source, SD_EVENT_PRIORITY_NORMAL,
                                     on_watch_socket_update, watch);
        if (r < 0)
                return r;
        r = stream_socket_new_client(watch->event, client, &watch_client_handlers, watch,
                                     &watch->client);
        if (r < 0)
                return r;
        r = websocket_new(&message_handlers, watch, stream_socket_queue(watch->client),
                          &watch->socket);
        if (r < 0)
                return r;
        watch->events.set_socket(watch->events.userdata, watch);
        if (client->early_length > 0)
                receive_messages(watch, client->early, client->early_length);
        watch_socket_update(watch);
        return 0;
}

int watch_socket_new(const WatchSocketSpec *spec, WatchSocket **ret) {
        WatchSocket *watch = calloc(1, sizeof(*watch));
        int r;

        if (!watch) {
                spec->events.free(spec->events.userdata);
                return -ENOMEM;
        }
        watch->event = sd_event_ref(spec->event);
        watch->events = spec->events;
        watch->on_over = spec->on_over;
        watch->userdata = spec->userdata;
        r = start_watch_socket(watch, &spec->client);
        if (r < 0) {
                watch_socket_free(watch);
                return r;
        }
        *ret = watch;
        return 0;
}

WatchSocket *watch_socket_free(WatchSocket *watch) {
        if (!watch)
                return NULL;
        watch->events.free(watch->events.userdata);
        sd_event_source_disable_unref(watch->update_source);
        sd_event_source_disable_unref(watch->end_source);
        sd_event_source_disable_unref(watch->linger_timer);
        websocket_free(watch->socket);
        stream_socket_free(watch->client);
        sd_event_unref(watch->event);
        free(watch);
        return NULL;
}
