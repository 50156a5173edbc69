/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/node-api/session/channel-socket.h"

#include "agent/node-api/wire/websocket.h"
#include "common/base64.h"
#include "common/cleanup.h"

#include <errno.h>

enum {
        BASE64_MESSAGE_MAX = 256 * 1024,
};

struct ChannelSocket {
        WebSocket *socket;
        bool is_base64;
        channel_data_t on_data;
        void *userdata;
        unsigned char channel; /* channel of the message that is being received */
        bool has_channel;
        bool has_data;  /* some of its data has been passed on */
        ByteQueue text; /* the rest of a base64 message */
        int error;      /* a handler's error */
};

static void on_channel_message_start(bool is_text, void *userdata) {
        ChannelSocket *socket = userdata;

        socket->has_channel = false;
        socket->has_data = false;
        byte_queue_done(&socket->text);
}

static void pass_on_channel_data(ChannelSocket *socket, const char *data, size_t length) {
        if (length == 0)
                return;
        socket->on_data(socket->channel, data, length, socket->userdata);
        socket->has_data = true;
}

static void on_channel_message_piece(const char *data, size_t length, void *userdata) {
        ChannelSocket *socket = userdata;
        int r;

        if (!socket->has_channel) {
                socket->has_channel = true;
                socket->channel = (unsigned char) (socket->is_base64 ? data[0] - '0' : data[0]);
                data++;
                length--;
        }
        if (!socket->is_base64) {
                pass_on_channel_data(socket, data, length);
                return;
        }
        r = byte_queue_append(&socket->text, BASE64_MESSAGE_MAX, data, length);
        if (r < 0)
                socket->error = r;
}

static void on_channel_message_end(void *userdata) {
        ChannelSocket *socket = userdata;
        cleanup_free char *data = NULL;
        size_t length;

        if (byte_queue_length(&socket->text) == 0)
                return;
        /* The decoder needs the NUL. */
        if (byte_queue_append(&socket->text, SIZE_MAX, "", 1) >= 0 &&
            base64_decode(byte_queue_bytes(&socket->text), &data, &length) >= 0)
                pass_on_channel_data(socket, data, length);
        byte_queue_done(&socket->text);
}

static const WebSocketHandlers channel_message_handlers = { on_channel_message_start,
                                                            on_channel_message_piece,
                                                            on_channel_message_end };

int channel_socket_new(bool is_base64, channel_data_t on_data, void *userdata, ByteQueue *output,
                       ChannelSocket **ret) {
        ChannelSocket *socket = calloc(1, sizeof(*socket));
        int r;

        if (!socket)
                return -ENOMEM;
        socket->is_base64 = is_base64;
        socket->on_data = on_data;
        socket->userdata = userdata;
        r = websocket_new(&channel_message_handlers, socket, output, &socket->socket);
        if (r < 0) {
                free(socket);
                return r;
        }
        *ret = socket;
        return 0;
}

ChannelSocket *channel_socket_free(ChannelSocket *socket) {
        if (!socket)
                return NULL;
        websocket_free(socket->socket);
        byte_queue_done(&socket->text);
        free(socket);
        return NULL;
}

bool channel_socket_is_first_data(const ChannelSocket *socket) {
        return !socket->has_data;
}

int channel_socket_receive(ChannelSocket *socket, const void *data, size_t length) {
        int r = websocket_receive(socket->socket, data, length);

        if (r < 0)
                return r;
        if (socket->error < 0)
                return socket->error;
        return websocket_is_gone(socket->socket);
}

static int send_base64_message(ChannelSocket *socket, unsigned char channel, const void *data,
                               size_t length) {
        cleanup_free char *text = malloc((length + 2) / 3 * 4 + 2);

        if (!text)
                return -ENOMEM;
        text[0] = (char) ('0' + channel);
        base64_encode(data, length, text + 1);
        return websocket_send(socket->socket, true, text, strlen(text));
}

int channel_socket_send(ChannelSocket *socket, unsigned char channel, const void *data,
                        size_t length) {
        cleanup_free char *message = NULL;

        if (socket->is_base64)
                return send_base64_message(socket, channel, data, length);
        message = malloc(length + 1);
        if (!message)
                return -ENOMEM;
        message[0] = (char) channel;
        if (length > 0)
                memcpy(message + 1, data, length);
        return websocket_send(socket->socket, false, message, length + 1);
}

int channel_socket_close(ChannelSocket *socket) {
        return websocket_close(socket->socket);
}
