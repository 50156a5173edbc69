/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/node-api/session/port-forward.h"

#include "agent/node-api/session/forwarded-port.h"
#include "agent/node-api/wire/spdy.h"
#include "agent/node-api/wire/websocket.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/event-source.h"
#include "common/list.h"
#include "common/text.h"

#define PAIR_USEC (30 * USEC_PER_SEC) /* for the second stream of a pair */

enum {
        REQUEST_ID_MAX = 64,
        PAIRS_MAX = 256, /* limit for a client; further pairs are refused */
};

/* The two streams of a connection, and the connection. */
typedef struct ForwardPair {
        struct ForwardPair *next;
        PortForward *forward;
        char request_id[REQUEST_ID_MAX];
        uint32_t error_stream, data_stream; /* 0: not open yet */
        unsigned port_number;
        sd_event_source *deadline; /* for the second stream */
        ForwardedPort *port;       /* NULL: not requested yet */
        bool has_client_ended, has_pod_ended;
        bool is_over; /* to be freed in update_port_forward() */
} ForwardPair;

struct PortForward {
        sd_event *event;
        char *pod, *agent_socket, *agent_path, *credential;
        void (*on_over)(void *userdata);
        void *userdata;
        StreamSocket *client;
        WebSocket *tunnel;     /* NULL: plain SPDY */
        ByteQueue spdy_output; /* output for a tunnel, until it is in a message */
        Spdy *spdy;
        ForwardPair *pairs;
        unsigned *n_of_all;             /* borrowed; pairs of all clients */
        sd_event_source *update_source; /* a pair has changed */
        sd_event_source *end_source;
};

/* ---- pairs ---- */

static void forward_pair_free(ForwardPair *pair) {
        sd_event_source_disable_unref(pair->deadline);
        forwarded_port_free(pair->port);
        (*pair->forward->n_of_all)--;
        free(pair);
}

static ForwardPair *find_forward_pair(PortForward *forward, const char *request_id) {
        for (ForwardPair *pair = forward->pairs; pair; pair = pair->next)
                if (!pair->is_over && streq(pair->request_id, request_id))
                        return pair;
        return NULL;
}

static ForwardPair *find_pair_of_stream(PortForward *forward, uint32_t stream) {
        for (ForwardPair *pair = forward->pairs; pair; pair = pair->next)
                if (!pair->is_over && (pair->data_stream == stream || pair->error_stream == stream))
                        return pair;
        return NULL;
}

static void free_ended_pairs(PortForward *forward) {
        ForwardPair **link = &forward->pairs;

        while (*link) {
                ForwardPair *pair = *link;

                if (pair->is_over) {
                        *link = pair->next;
                        forward_pair_free(pair);
                } else {
                        link = &pair->next;
                }
        }
}

static void schedule_forward_end(PortForward *forward) {
        (void) sd_event_source_set_enabled(forward->end_source, SD_EVENT_ONESHOT);
}

/* SPDY's output becomes messages of the tunnel. */
static int flush_forward_tunnel(PortForward *forward) {
        ByteQueue *output = &forward->spdy_output;
        int r;

        if (!forward->tunnel || byte_queue_length(output) == 0)
                return 0;
        r = websocket_send(forward->tunnel, false, byte_queue_bytes(output),
                           byte_queue_length(output));
        byte_queue_done(output);
        return r;
}

/* All pairs stop as soon as the client's queue is full: the data of each of many would exceed its
 * limit. The first pair becomes the last one, so that each pair is the first to continue in turn.
 */
static void pause_forward_pairs(PortForward *forward) {
        bool is_full = stream_queue_is_full(stream_socket_queue(forward->client));
        ForwardPair *first = forward->pairs;

        if (is_full && first && first->next) {
                LIST_REMOVE(forward->pairs, first);
                LIST_APPEND(forward->pairs, first);
        }
        list_foreach(pair, forward->pairs)
                if (pair->port)
                        forwarded_port_pause_reading(pair->port, is_full);
}

/* Called after everything that may have changed a queue; decides which sides are read now. */
static void update_port_forward(PortForward *forward) {
        bool is_any_full = false;

        if (flush_forward_tunnel(forward) < 0)
                schedule_forward_end(forward);
        free_ended_pairs(forward);
        stream_socket_update(forward->client);
        list_foreach(pair, forward->pairs)
                is_any_full |= pair->port && forwarded_port_is_full(pair->port);
        pause_forward_pairs(forward);
        stream_socket_pause_reading(forward->client, is_any_full);
}

/* Sends the message on the error stream and ends both streams; the client treats any text there as
 * a failed connection. */
static void fail_forward_pair(ForwardPair *pair, const char *message) {
        PortForward *forward = pair->forward;
        Spdy *spdy = forward->spdy;
        cleanup_free char *text = text_format("error forwarding port %u to pod %s: %s",
                                              pair->port_number, forward->pod, message);

        if (spdy_send(spdy, pair->error_stream, strna(text), strlen(strna(text)), true) < 0 ||
            spdy_reset(spdy, pair->data_stream, SPDY_CANCEL) < 0 ||
            spdy_reset(spdy, pair->error_stream, SPDY_CANCEL) < 0)
                schedule_forward_end(forward);
        pair->is_over = true;
}

/* ---- the pod's side ---- */

static void on_pair_data(ForwardedPort *port, const char *data, size_t length, void *userdata) {
        ForwardPair *pair = userdata;

        if (spdy_send(pair->forward->spdy, pair->data_stream, data, length, false) < 0)
                schedule_forward_end(pair->forward);
        if (flush_forward_tunnel(pair->forward) < 0)
                schedule_forward_end(pair->forward);
        stream_socket_update(pair->forward->client);
        if (stream_queue_is_full(stream_socket_queue(pair->forward->client)))
                pause_forward_pairs(pair->forward);
}

/* The port that called must not be freed before its call returns. */
static void update_forward_later(PortForward *forward) {
        (void) sd_event_source_set_enabled(forward->update_source, SD_EVENT_ONESHOT);
}

static int on_forward_update(sd_event_source *source, void *userdata) {
        update_port_forward(userdata);
        return 0;
}

/* Both streams have ended, and all data from the client has been written. */
static void check_forward_pair_end(ForwardPair *pair) {
        if (pair->has_client_ended && pair->has_pod_ended && forwarded_port_is_empty(pair->port))
                pair->is_over = true;
}

static void on_pair_end(ForwardedPort *port, void *userdata) {
        ForwardPair *pair = userdata;
        Spdy *spdy = pair->forward->spdy;

        pair->has_pod_ended = true;
        if (spdy_send(spdy, pair->data_stream, NULL, 0, true) < 0 ||
            spdy_send(spdy, pair->error_stream, NULL, 0, true) < 0)
                schedule_forward_end(pair->forward);
        check_forward_pair_end(pair);
        update_forward_later(pair->forward);
}

static void on_pair_written(ForwardedPort *port, void *userdata) {
        ForwardPair *pair = userdata;

        check_forward_pair_end(pair);
        update_forward_later(pair->forward);
}

/* Without a message, the connection had been established and was reset, which is no reason to close
 * the others. */
static void on_pair_failed(ForwardedPort *port, const char *message, void *userdata) {
        ForwardPair *pair = userdata;
        Spdy *spdy = pair->forward->spdy;

        if (message) {
                fail_forward_pair(pair, message);
        } else {
                if (spdy_send(spdy, pair->error_stream, NULL, 0, true) < 0 ||
                    spdy_reset(spdy, pair->data_stream, SPDY_CANCEL) < 0)
                        schedule_forward_end(pair->forward);
                pair->is_over = true;
        }
        update_forward_later(pair->forward);
}

static const ForwardedPortHandlers forward_pair_handlers = { on_pair_data, on_pair_end,
                                                             on_pair_written, on_pair_failed };

static void connect_forward_pair(ForwardPair *pair) {
        PortForward *forward = pair->forward;
        cleanup_free char *path = NULL;
        int r = -ENOMEM;

        pair->deadline = sd_event_source_disable_unref(pair->deadline);
        path = text_format("%s%u", forward->agent_path, pair->port_number);
        if (path)
                r = forwarded_port_new(forward->event, forward->agent_socket, path,
                                       forward->credential, &forward_pair_handlers, pair,
                                       &pair->port);
        if (r < 0)
                fail_forward_pair(pair, strerror(-r));
        else if (pair->has_client_ended)
                forwarded_port_end(pair->port);
}

/* ---- the client's side ---- */

static int on_pair_deadline(sd_event_source *source, uint64_t usec, void *userdata) {
        ForwardPair *pair = userdata;

        fail_forward_pair(pair, "timed out waiting for streams");
        update_forward_later(pair->forward);
        return 0;
}

static int parse_forward_port(const char *text, unsigned *ret) {
        char *end;
        unsigned long number;

        if (!text || text[0] < '0' || text[0] > '9')
                return -EINVAL;
        number = strtoul(text, &end, 10);
        if (*end != '\0' || number < 1 || number > UINT16_MAX)
                return -EINVAL;
        *ret = (unsigned) number;
        return 0;
}

/* Clients before Kubernetes 1.2 sent no ID, and opened the data stream after the error stream. */
static int find_request_id(uint32_t stream, bool is_data, const SpdyHeaders *headers,
                           char ret[REQUEST_ID_MAX]) {
        const char *id = spdy_header_value(headers, "requestid");
        int n;

        if (id && id[0])
                n = snprintf(ret, REQUEST_ID_MAX, "%s", id);
        else
                n = snprintf(ret, REQUEST_ID_MAX, "%u", is_data ? stream - 2 : stream);
        return n < REQUEST_ID_MAX ? 0 : -EINVAL;
}

/* A pair may outlive its streams, whose number is limited: it exists until the pod has read all
 * data. */
static bool has_max_pairs(const PortForward *forward) {
        size_t n = 0;

        for (const ForwardPair *pair = forward->pairs; pair; pair = pair->next)
                n++;
        return n >= PAIRS_MAX || *forward->n_of_all >= FORWARDED_PORTS_MAX;
}

static ForwardPair *add_forward_pair(PortForward *forward, const char *request_id,
                                     unsigned port_number) {
        ForwardPair *pair = has_max_pairs(forward) ? NULL : calloc(1, sizeof(*pair));

        if (!pair)
                return NULL;
        pair->forward = forward;
        pair->port_number = port_number;
        memcpy(pair->request_id, request_id, strlen(request_id) + 1);
        if (sd_event_add_time_relative(forward->event, &pair->deadline, CLOCK_MONOTONIC, PAIR_USEC,
                                       0, on_pair_deadline, pair) < 0) {
                free(pair);
                return NULL;
        }
        (*forward->n_of_all)++;
        pair->next = forward->pairs;
        forward->pairs = pair;
        return pair;
}

static int on_forward_stream(uint32_t stream, const SpdyHeaders *headers, void *userdata) {
        PortForward *forward = userdata;
        const char *type = strna(spdy_header_value(headers, "streamtype"));
        bool is_data = streq(type, "data");
        char request_id[REQUEST_ID_MAX];
        unsigned port_number;
        ForwardPair *pair;
        uint32_t *slot;

        if (parse_forward_port(spdy_header_value(headers, "port"), &port_number) < 0 ||
            (!is_data && !streq(type, "error")) ||
            find_request_id(stream, is_data, headers, request_id) < 0)
                return -EINVAL;
        pair = find_forward_pair(forward, request_id);
        if (!pair)
                pair = add_forward_pair(forward, request_id, port_number);
        if (!pair)
                return -ENOMEM;
        slot = is_data ? &pair->data_stream : &pair->error_stream;
        if (*slot != 0)
                return -EEXIST;
        *slot = stream;
        if (is_data)
                pair->port_number = port_number;
        if (pair->data_stream != 0 && pair->error_stream != 0)
                connect_forward_pair(pair);
        return pair->is_over ? -EIO : 0;
}

static void on_forward_data(uint32_t stream, const char *data, size_t length, void *userdata) {
        ForwardPair *pair = find_pair_of_stream(userdata, stream);

        if (!pair || stream != pair->data_stream || !pair->port)
                return;
        if (forwarded_port_send(pair->port, data, length) < 0)
                fail_forward_pair(pair, "too much data waits for it");
}

static void on_forward_end(uint32_t stream, void *userdata) {
        ForwardPair *pair = find_pair_of_stream(userdata, stream);

        if (!pair || stream != pair->data_stream)
                return;
        pair->has_client_ended = true;
        if (!pair->port)
                return;
        forwarded_port_end(pair->port);
        check_forward_pair_end(pair);
}

static void on_forward_reset(uint32_t stream, void *userdata) {
        ForwardPair *pair = find_pair_of_stream(userdata, stream);

        if (!pair)
                return;
        if (stream == pair->data_stream &&
            spdy_send(pair->forward->spdy, pair->error_stream, NULL, 0, true) < 0)
                schedule_forward_end(pair->forward);
        pair->is_over = true;
}

static const SpdyHandlers forward_spdy_handlers = { on_forward_stream, on_forward_data,
                                                    on_forward_end, on_forward_reset };

/* ---- the client's connection ---- */

static void receive_forward_bytes(PortForward *forward, const char *data, size_t length) {
        int r = spdy_receive(forward->spdy, data, length);

        if (r < 0 || spdy_is_gone(forward->spdy))
                schedule_forward_end(forward);
}

/* Message boundaries have no meaning. */
static void on_tunnel_start(bool is_text, void *userdata) {
        if (is_text)
                schedule_forward_end(userdata);
}

static void on_tunnel_piece(const char *data, size_t length, void *userdata) {
        receive_forward_bytes(userdata, data, length);
}

static void on_tunnel_end(void *userdata) {
}

static const WebSocketHandlers forward_tunnel_handlers = { on_tunnel_start, on_tunnel_piece,
                                                           on_tunnel_end };

static void receive_from_forward_client(PortForward *forward, const char *data, size_t length) {
        if (!forward->tunnel)
                receive_forward_bytes(forward, data, length);
        else if (websocket_receive(forward->tunnel, data, length) < 0 ||
                 websocket_is_gone(forward->tunnel))
                schedule_forward_end(forward);
        update_port_forward(forward);
}

static void on_forward_client_data(const char *data, size_t length, void *userdata) {
        receive_from_forward_client(userdata, data, length);
}

static void on_forward_client_end(void *userdata) {
        schedule_forward_end(userdata);
}

static void on_forward_client_written(void *userdata) {
        update_port_forward(userdata);
}

static void on_forward_client_error(int error, void *userdata) {
        schedule_forward_end(userdata);
}

static const StreamSocketHandlers forward_client_handlers = { on_forward_client_data,
                                                              on_forward_client_end,
                                                              on_forward_client_written,
                                                              on_forward_client_error };

static int on_forward_over(sd_event_source *source, void *userdata) {
        PortForward *forward = userdata;

        forward->on_over(forward->userdata);
        return 0;
}

static int add_forward_defer(PortForward *forward, sd_event_source **ret,
                             sd_event_handler_t handler) {
        return event_add_disabled_defer(forward->event, ret, SD_EVENT_PRIORITY_NORMAL, handler,
                                        forward);
}

static int start_port_forward(PortForward *forward, const PortForwardSpec *spec) {
        ByteQueue *output;
        int r = add_forward_defer(forward, &forward->end_source, on_forward_over);

        if (r < 0)
                return r;
        r = add_forward_defer(forward, &forward->update_source, on_forward_update);
        if (r < 0)
                return r;
        r = stream_socket_new_client(forward->event, &spec->client, &forward_client_handlers,
                                     forward, &forward->client);
        if (r < 0)
                return r;
        output = stream_socket_queue(forward->client);
        if (spec->is_tunnel)
                r = websocket_new(&forward_tunnel_handlers, forward, output, &forward->tunnel);
        if (r >= 0)
                r = spdy_new(&forward_spdy_handlers, forward,
                             spec->is_tunnel ? &forward->spdy_output : output, &forward->spdy);
        if (r >= 0 && spec->client.early_length > 0)
                receive_from_forward_client(forward, spec->client.early, spec->client.early_length);
        stream_socket_update(forward->client);
        return r;
}

int port_forward_new(const PortForwardSpec *spec, PortForward **ret) {
        cleanup_with(port_forward_freep) PortForward *forward = calloc(1, sizeof(*forward));
        int r;

        if (!forward)
                return -ENOMEM;
        forward->event = sd_event_ref(spec->event);
        forward->n_of_all = spec->n_of_all;
        forward->on_over = spec->on_over;
        forward->userdata = spec->userdata;
        forward->pod = strdup(spec->pod);
        forward->agent_socket = strdup(spec->agent_socket);
        forward->agent_path = strdup(spec->agent_path);
        forward->credential = strdup(strna(spec->credential));
        if (!forward->pod || !forward->agent_socket || !forward->agent_path || !forward->credential)
                return -ENOMEM;
        r = start_port_forward(forward, spec);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(forward);
        return 0;
}

PortForward *port_forward_free(PortForward *forward) {
        if (!forward)
                return NULL;
        for (ForwardPair *pair = forward->pairs; pair; pair = pair->next)
                pair->is_over = true;
        free_ended_pairs(forward);
        sd_event_source_disable_unref(forward->end_source);
        sd_event_source_disable_unref(forward->update_source);
        spdy_free(forward->spdy);
        websocket_free(forward->tunnel);
        stream_socket_free(forward->client);
        byte_queue_done(&forward->spdy_output);
        sd_event_unref(forward->event);
        free(forward->pod);
        free(forward->agent_socket);
        free(forward->agent_path);
        free(forward->credential);
        free(forward);
        return NULL;
}
