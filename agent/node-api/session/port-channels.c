/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/node-api/session/port-channels.h"

#include "agent/node-api/session/channel-socket.h"
#include "agent/node-api/session/forwarded-port.h"
#include "agent/node-api/session/session-protocol.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/event-source.h"
#include "common/text.h"

#include <errno.h>

#define LINGER_USEC (300 * USEC_PER_SEC) /* for the client to close, once all ports have ended */

/* One of the ports: its index determines its channels. */
typedef struct PortChannel {
        PortChannels *channels;
        unsigned number;
        ForwardedPort *port;
        bool is_over;
} PortChannel;

struct PortChannels {
        sd_event *event;
        char *pod;
        void (*on_over)(void *userdata);
        void *userdata;
        StreamSocket *client;
        ChannelSocket *socket;
        PortChannel ports[PORT_CHANNELS_MAX];
        size_t n_ports;
        size_t first;                   /* the port that continues first */
        unsigned *n_of_all;             /* borrowed; connections of all clients */
        bool is_closing;                /* all ports have ended */
        bool is_client_gone;            /* orderly: pending data is still written */
        sd_event_source *update_source; /* a port has changed */
        sd_event_source *end_source;
        sd_event_source *linger_timer;
};

/* ---- the query ---- */

int forwarded_ports_add(ForwardedPorts *ports, const char *text) {
        const char *end;

        for (;; text = end + 1) {
                unsigned long number;
                char *rest;

                if (text[0] < '0' || text[0] > '9')
                        return -EINVAL;
                number = strtoul(text, &rest, 10);
                end = rest;
                if (number < 1 || number > UINT16_MAX || (*end != '\0' && *end != ','))
                        return -EINVAL;
                if (ports->n >= PORT_CHANNELS_MAX)
                        return -E2BIG;
                ports->numbers[ports->n++] = (uint16_t) number;
                if (*end == '\0')
                        return 0;
        }
}

const char *port_channels_protocol(const char *offered) {
        static const char *const protocols[] = { "v4.channel.k8s.io", "v4.base64.channel.k8s.io" };
        const char *word;
        size_t length;

        if (!offered)
                return "";
        while (next_protocol_word(&offered, &word, &length))
                for (size_t i = 0; i < N_ELEMENTS(protocols); i++)
                        if (strlen(protocols[i]) == length &&
                            memcmp(protocols[i], word, length) == 0)
                                return protocols[i];
        return NULL;
}

/* ---- the end ---- */

static void schedule_channels_end(PortChannels *channels) {
        (void) sd_event_source_set_enabled(channels->end_source, SD_EVENT_ONESHOT);
}

static int on_channels_end(sd_event_source *source, void *userdata) {
        PortChannels *channels = userdata;

        channels->on_over(channels->userdata);
        return 0;
}

static int on_channels_lingered(sd_event_source *source, uint64_t usec, void *userdata) {
        schedule_channels_end(userdata);
        return 0;
}

/* Without a client a port ends when all data from the client has been written. */
static bool have_all_ports_ended(const PortChannels *channels) {
        for (size_t i = 0; i < channels->n_ports; i++) {
                const PortChannel *channel = &channels->ports[i];

                if (!channel->is_over && !(channels->is_client_gone && channel->port &&
                                           forwarded_port_is_empty(channel->port)))
                        return false;
        }
        return true;
}

static void close_client_channels(PortChannels *channels) {
        channels->is_closing = true;
        if ((!channels->is_client_gone && channel_socket_close(channels->socket) < 0) ||
            sd_event_add_time_relative(channels->event, &channels->linger_timer, CLOCK_MONOTONIC,
                                       LINGER_USEC, 0, on_channels_lingered, channels) < 0)
                schedule_channels_end(channels);
        stream_socket_shut_when_written(channels->client);
}

/* The client reads the rest and then closes; if this end closed first, the kernel might discard the
 * rest. */
static void close_ended_channels(PortChannels *channels) {
        if (!have_all_ports_ended(channels))
                return;
        if (!channels->is_closing)
                close_client_channels(channels);
        if (channels->is_client_gone &&
            byte_queue_length(stream_socket_queue(channels->client)) == 0)
                schedule_channels_end(channels);
}

/* All ports stop as soon as the client's queue is full: the data of each of many would exceed its
 * limit. Each port is the first to continue in turn. */
static void pause_port_channels(PortChannels *channels) {
        bool is_full = stream_queue_is_full(stream_socket_queue(channels->client));

        if (is_full)
                channels->first = (channels->first + 1) % channels->n_ports;
        for (size_t i = 0; i < channels->n_ports; i++) {
                PortChannel *channel = &channels->ports[(channels->first + i) % channels->n_ports];

                if (channel->port)
                        forwarded_port_pause_reading(channel->port, is_full);
        }
}

/* Called after everything that may have changed a queue; decides which sides are read now. */
static void update_port_channels(PortChannels *channels) {
        bool is_any_full = false;

        stream_socket_update(channels->client);
        for (size_t i = 0; i < channels->n_ports; i++) {
                PortChannel *channel = &channels->ports[i];

                if (channel->is_over)
                        channel->port = forwarded_port_free(channel->port);
                is_any_full |= channel->port && forwarded_port_is_full(channel->port);
        }
        pause_port_channels(channels);
        close_ended_channels(channels);
        stream_socket_pause_reading(channels->client, is_any_full);
}

/* The port that called must not be freed before its call returns. */
static void update_channels_later(PortChannels *channels) {
        (void) sd_event_source_set_enabled(channels->update_source, SD_EVENT_ONESHOT);
}

static int on_channels_update(sd_event_source *source, void *userdata) {
        update_port_channels(userdata);
        return 0;
}

/* ---- the pod's side ---- */

static void send_port_data(PortChannel *channel, bool is_error, const void *data, size_t length) {
        PortChannels *channels = channel->channels;
        size_t number = (size_t) (channel - channels->ports) * 2 + is_error;

        if (channel_socket_send(channels->socket, (unsigned char) number, data, length) < 0)
                schedule_channels_end(channels);
        stream_socket_update(channels->client);
}

static void fail_port_channel(PortChannel *channel, const char *message) {
        PortChannels *channels = channel->channels;
        cleanup_free char *text = text_format("error forwarding port %u to pod %s: %s",
                                              channel->number, channels->pod, message);

        send_port_data(channel, true, strna(text), strlen(strna(text)));
        channel->is_over = true;
        update_channels_later(channels);
}

static void on_channel_port_data(ForwardedPort *port, const char *data, size_t length,
                                 void *userdata) {
        PortChannel *channel = userdata;

        send_port_data(channel, false, data, length);
        if (stream_queue_is_full(stream_socket_queue(channel->channels->client)))
                pause_port_channels(channel->channels);
}

/* A single channel cannot end, so the client is notified when all of them have ended. */
static void on_channel_port_end(ForwardedPort *port, void *userdata) {
        PortChannel *channel = userdata;

        channel->is_over = true;
        update_channels_later(channel->channels);
}

static void on_channel_port_written(ForwardedPort *port, void *userdata) {
        update_channels_later(((PortChannel *) userdata)->channels);
}

static void on_channel_port_failed(ForwardedPort *port, const char *message, void *userdata) {
        fail_port_channel(userdata, message ? message : "the connection was reset");
}

static const ForwardedPortHandlers channel_port_handlers = {
        on_channel_port_data, on_channel_port_end, on_channel_port_written, on_channel_port_failed
};

/* ---- the client's side ---- */

static void on_channel_data(unsigned char number, const char *data, size_t length, void *userdata) {
        PortChannels *channels = userdata;
        PortChannel *channel;

        if (number / 2 >= channels->n_ports || number % 2 != 0)
                return;
        channel = &channels->ports[number / 2];
        if (channel->is_over)
                return;
        if (forwarded_port_send(channel->port, data, length) < 0)
                fail_port_channel(channel, "too much data waits for it");
}

static void receive_channels(PortChannels *channels, const char *data, size_t length) {
        int r = channel_socket_receive(channels->socket, data, length);

        if (r < 0 || (r > 0 && channels->is_closing))
                schedule_channels_end(channels);
        channels->is_client_gone |= r > 0;
        update_port_channels(channels);
}

static void on_channels_client_data(const char *data, size_t length, void *userdata) {
        receive_channels(userdata, data, length);
}

static void on_channels_client_end(void *userdata) {
        PortChannels *channels = userdata;

        if (channels->is_closing)
                schedule_channels_end(channels);
        channels->is_client_gone = true;
        update_port_channels(channels);
}

static void on_channels_client_written(void *userdata) {
        update_port_channels(userdata);
}

static void on_channels_client_error(int error, void *userdata) {
        schedule_channels_end(userdata);
}

static const StreamSocketHandlers channels_client_handlers = { on_channels_client_data,
                                                               on_channels_client_end,
                                                               on_channels_client_written,
                                                               on_channels_client_error };

/* ---- the start ---- */

static int start_port_channel(PortChannels *channels, const PortChannelsSpec *spec, size_t i) {
        PortChannel *channel = &channels->ports[i];
        const unsigned char number[] = { (unsigned char) (spec->ports.numbers[i] & 0xff),
                                         (unsigned char) (spec->ports.numbers[i] >> 8) };
        cleanup_free char *path = NULL;

        channel->channels = channels;
        channel->number = spec->ports.numbers[i];
        channels->n_ports = i + 1;
        (*channels->n_of_all)++;
        send_port_data(channel, false, number, sizeof(number));
        send_port_data(channel, true, number, sizeof(number));
        path = text_format("%s%u", spec->agent_path, channel->number);
        if (!path)
                return -ENOMEM;
        return forwarded_port_new(channels->event, spec->agent_socket, path, spec->credential,
                                  &channel_port_handlers, channel, &channel->port);
}

static int add_channels_defer(PortChannels *channels, sd_event_source **ret,
                              sd_event_handler_t handler) {
        return event_add_disabled_defer(channels->event, ret, SD_EVENT_PRIORITY_NORMAL, handler,
                                        channels);
}

static int start_port_channels(PortChannels *channels, const PortChannelsSpec *spec) {
        int r = add_channels_defer(channels, &channels->end_source, on_channels_end);

        if (r < 0)
                return r;
        r = add_channels_defer(channels, &channels->update_source, on_channels_update);
        if (r < 0)
                return r;
        r = stream_socket_new_client(channels->event, &spec->client, &channels_client_handlers,
                                     channels, &channels->client);
        if (r < 0)
                return r;
        r = channel_socket_new(spec->is_base64, on_channel_data, channels,
                               stream_socket_queue(channels->client), &channels->socket);
        if (r < 0)
                return r;
        for (size_t i = 0; i < spec->ports.n; i++) {
                r = start_port_channel(channels, spec, i);
                if (r < 0)
                        return r;
        }
        if (spec->client.early_length > 0)
                receive_channels(channels, spec->client.early, spec->client.early_length);
        stream_socket_update(channels->client);
        return 0;
}

int port_channels_new(const PortChannelsSpec *spec, PortChannels **ret) {
        PortChannels *channels = calloc(1, sizeof(*channels));
        int r;

        if (!channels)
                return -ENOMEM;
        channels->event = sd_event_ref(spec->event);
        channels->n_of_all = spec->n_of_all;
        channels->on_over = spec->on_over;
        channels->userdata = spec->userdata;
        channels->pod = strdup(spec->pod);
        r = channels->pod ? start_port_channels(channels, spec) : -ENOMEM;
        if (r < 0) {
                port_channels_free(channels);
                return r;
        }
        *ret = channels;
        return 0;
}

PortChannels *port_channels_free(PortChannels *channels) {
        if (!channels)
                return NULL;
        for (size_t i = 0; i < channels->n_ports; i++)
                forwarded_port_free(channels->ports[i].port);
        *channels->n_of_all -= (unsigned) channels->n_ports;
        sd_event_source_disable_unref(channels->end_source);
        sd_event_source_disable_unref(channels->update_source);
        sd_event_source_disable_unref(channels->linger_timer);
        channel_socket_free(channels->socket);
        stream_socket_free(channels->client);
        sd_event_unref(channels->event);
        free(channels->pod);
        free(channels);
        return NULL;
}
