/* SPDX-License-Identifier: Apache-2.0 */
#include "common/channels.h"

#include "common/cleanup.h"
#include "common/wslay-library.h"

#include <stdint.h>
#include <sys/random.h>
#include <sys/socket.h>

enum {
        MESSAGES_MAX = 1024, /* messages that wait to be sent; the reply to a ping has no payload */
};

struct Channels {
        int fd;
        wslay_event_context_ptr context;
        channels_message_t message_callback;
        void *userdata;
        bool is_held;
        bool is_closing; /* sent once the queue is empty, because a close frame would overtake the
                          * queued data */
        bool is_gone;    /* the peer is gone, and no data follows */
        bool has_write_failed; /* the peer is gone; its data is still read */
};

static const WslayLibrary *wslay;

static ssize_t on_websocket_recv(wslay_event_context_ptr context, uint8_t *buffer, size_t size,
                                 int flags, void *userdata) {
        Channels *channels = userdata;
        ssize_t n;

        if (channels->is_held || !channels_wants_read(channels)) {
                wslay->event_set_error(context, WSLAY_ERR_WOULDBLOCK);
                return -1;
        }
        do
                n = recv(channels->fd, buffer, size, MSG_DONTWAIT);
        while (n < 0 && errno == EINTR);
        if (n > 0)
                return n;
        channels->is_gone = n == 0 || (errno != EAGAIN);
        wslay->event_set_error(context, channels->is_gone ? WSLAY_ERR_CALLBACK_FAILURE
                                                          : WSLAY_ERR_WOULDBLOCK);
        return -1;
}

static ssize_t on_websocket_send(wslay_event_context_ptr context, const uint8_t *data,
                                 size_t length, int flags, void *userdata) {
        Channels *channels = userdata;
        ssize_t n;

        do
                n = send(channels->fd, data, length, MSG_DONTWAIT | MSG_NOSIGNAL);
        while (n < 0 && errno == EINTR);
        if (n >= 0)
                return n;
        wslay->event_set_error(context,
                               errno == EAGAIN ? WSLAY_ERR_WOULDBLOCK : WSLAY_ERR_CALLBACK_FAILURE);
        return -1;
}

/* Messages of a client are masked, because caches might otherwise mistake the connection for HTTP.
 */
static int on_websocket_mask(wslay_event_context_ptr context, uint8_t *buffer, size_t length,
                             void *userdata) {
        return getrandom(buffer, length, 0) == (ssize_t) length ? 0 : -1;
}

static void on_websocket_message(wslay_event_context_ptr context,
                                 const struct wslay_event_on_msg_recv_arg *message,
                                 void *userdata) {
        Channels *channels = userdata;

        if (wslay_is_ctrl_frame(message->opcode) || message->msg_length == 0)
                return;
        channels->message_callback(message->msg[0], (const char *) message->msg + 1,
                                   message->msg_length - 1, channels->userdata);
}

int channels_new(int fd, bool is_client, channels_message_t on_message_came, void *userdata,
                 Channels **ret) {
        static const struct wslay_event_callbacks callbacks = {
                .recv_callback = on_websocket_recv,
                .send_callback = on_websocket_send,
                .genmask_callback = on_websocket_mask,
                .on_msg_recv_callback = on_websocket_message,
        };
        Channels *channels;
        int r;

        wslay = wslay_library();
        if (!wslay)
                return -ELIBACC;
        channels = calloc(1, sizeof(*channels));
        if (!channels)
                return -ENOMEM;
        *channels =
                (Channels){ .fd = fd, .message_callback = on_message_came, .userdata = userdata };
        r = is_client ? wslay->event_context_client_init(&channels->context, &callbacks, channels)
                      : wslay->event_context_server_init(&channels->context, &callbacks, channels);
        if (r != 0) {
                free(channels);
                return -ENOMEM;
        }
        wslay->event_config_set_max_recv_msg_length(channels->context, CHANNELS_MESSAGE_MAX);
        *ret = channels;
        return 0;
}

Channels *channels_free(Channels *channels) {
        if (channels)
                wslay->event_context_free(channels->context);
        free(channels);
        return NULL;
}

static int wslay_error_to_errno(int r) {
        if (r == WSLAY_ERR_NOMEM)
                return -ENOMEM;
        return r == 0 ? 0 : r == WSLAY_ERR_CALLBACK_FAILURE ? -ECONNRESET : -EPROTO;
}

int channels_read(Channels *channels) {
        int r = wslay_error_to_errno(wslay->event_recv(channels->context));

        if (r < 0)
                return r;
        /* The peer has sent its close frame; later bytes are not messages. */
        if (!wslay->event_want_read(channels->context) && !channels_is_closed_by_peer(channels))
                return -EPROTO;
        return r;
}

static int send_channel_messages(Channels *channels) {
        int r = wslay->event_send(channels->context);

        if (r == 0 && channels->is_closing && !wslay->event_want_write(channels->context)) {
                channels->is_closing = false;
                r = wslay->event_queue_close(channels->context, WSLAY_CODE_NORMAL_CLOSURE, NULL, 0);
                if (r == 0)
                        r = wslay->event_send(channels->context);
        }
        return wslay_error_to_errno(r);
}

int channels_write(Channels *channels) {
        int r = send_channel_messages(channels);

        channels->has_write_failed = channels->has_write_failed || r < 0;
        return r;
}

void channels_hold(Channels *channels, bool is_held) {
        channels->is_held = is_held;
}

int channels_send(Channels *channels, unsigned char channel, const void *data, size_t length) {
        cleanup_free uint8_t *copy = malloc(length + 1);
        struct wslay_event_msg message = { WSLAY_BINARY_FRAME, copy, length + 1 };

        if (!copy)
                return -ENOMEM;
        copy[0] = channel;
        if (length > 0)
                memcpy(copy + 1, data, length);
        return wslay->event_queue_msg(channels->context, &message) == WSLAY_ERR_NOMEM ? -ENOMEM : 0;
}

void channels_close(Channels *channels) {
        channels->is_closing = true;
}

size_t channels_queued(const Channels *channels) {
        return wslay->event_get_queued_msg_length(channels->context);
}

bool channels_wants_write(const Channels *channels) {
        return !channels->has_write_failed &&
               (channels->is_closing || wslay->event_want_write(channels->context));
}

bool channels_wants_read(const Channels *channels) {
        return !channels_is_closed_by_peer(channels) &&
               (channels->has_write_failed ||
                wslay->event_get_queued_msg_count(channels->context) < MESSAGES_MAX);
}

bool channels_is_closed_by_peer(const Channels *channels) {
        return wslay->event_get_close_received(channels->context);
}

bool channels_is_over(const Channels *channels) {
        return channels_is_closed_by_peer(channels) &&
               (channels->has_write_failed || wslay->event_get_close_sent(channels->context));
}
