/* SPDX-License-Identifier: Apache-2.0 */

/* A session over a WebSocket: the first byte of a message is the channel. Sessions whose protocol
 * has text messages carry base64, which is decoded when the message is whole. */

#include "agent/node-api/session-wire-private.h"
#include "agent/node-api/websocket.h"
#include "common/base64.h"
#include "common/channels.h"
#include "common/cleanup.h"

enum {
        BASE64_MESSAGE_MAX = 256 * 1024,
        NO_CHANNEL = -1, /* of a message that has not started, or is to be dropped */
};

typedef struct WebSocketSession {
        SessionWire *wire;
        WebSocket *socket;
        int channel; /* of the message that is being received */
        bool has_channel;
        bool has_data;  /* behind the channel */
        ByteQueue text; /* the rest of such a message, in base64 */
        int error;      /* of a handler */
} WebSocketSession;

static void pass_on_channel_data(WebSocketSession *session, const char *data, size_t length) {
        SessionWire *wire = session->wire;

        switch (session->channel) {
        case CHANNEL_INPUT:
                session_wire_report_input(wire, data, length);
                break;
        case CHANNEL_RESIZE:
                session_wire_report_resize(wire, data, length);
                break;
        case CHANNEL_CLOSE: /* its first byte, however the message is cut */
                if (wire->protocol->has_close_signal && !session->has_data && length > 0 &&
                    data[0] == CHANNEL_INPUT)
                        session_wire_report_input_end(wire);
                break;
        default:
                break; /* the kubelet ignores them too */
        }
        session->has_data = session->has_data || length > 0;
}

static void on_session_message_start(bool is_text, void *userdata) {
        WebSocketSession *session = userdata;

        session->has_channel = false;
        session->has_data = false;
        session->channel = NO_CHANNEL;
        byte_queue_done(&session->text);
}

static void on_session_message_piece(const char *data, size_t length, void *userdata) {
        WebSocketSession *session = userdata;
        bool is_base64 = session->wire->protocol->is_base64;
        int r;

        if (!session->has_channel) {
                session->has_channel = true;
                session->channel = is_base64 ? data[0] - '0' : (unsigned char) data[0];
                data++;
                length--;
        }
        if (!is_base64) {
                pass_on_channel_data(session, data, length);
                return;
        }
        r = byte_queue_append(&session->text, BASE64_MESSAGE_MAX, data, length);
        if (r < 0)
                session->error = r;
}

static void on_session_message_end(void *userdata) {
        WebSocketSession *session = userdata;
        cleanup_free char *data = NULL;
        size_t length;

        if (byte_queue_length(&session->text) == 0)
                return;
        /* The NUL is for the decoder. */
        if (byte_queue_append(&session->text, SIZE_MAX, "", 1) >= 0 &&
            base64_decode(byte_queue_bytes(&session->text), &data, &length) >= 0)
                pass_on_channel_data(session, data, length);
        byte_queue_done(&session->text);
}

static const WebSocketHandlers session_message_handlers = { on_session_message_start,
                                                            on_session_message_piece,
                                                            on_session_message_end };

static void websocket_session_free(void *state) {
        WebSocketSession *session = state;

        websocket_free(session->socket);
        byte_queue_done(&session->text);
        free(session);
}

static int websocket_session_new(SessionWire *wire, void **ret_state) {
        WebSocketSession *session = calloc(1, sizeof(*session));
        int r;

        if (!session)
                return -ENOMEM;
        session->wire = wire;
        r = websocket_new(&session_message_handlers, session, wire->output, &session->socket);
        if (r < 0) {
                free(session);
                return r;
        }
        *ret_state = session;
        return 0;
}

static int send_base64_message(WebSocketSession *session, unsigned char channel, const void *data,
                               size_t length) {
        cleanup_free char *text = malloc((length + 2) / 3 * 4 + 2);

        if (!text)
                return -ENOMEM;
        text[0] = (char) ('0' + channel);
        base64_encode(data, length, text + 1);
        return websocket_send(session->socket, true, text, strlen(text));
}

static int send_channel_message(WebSocketSession *session, unsigned char channel, const void *data,
                                size_t length) {
        cleanup_free char *message = NULL;

        if (session->wire->protocol->is_base64)
                return send_base64_message(session, channel, data, length);
        message = malloc(length + 1);
        if (!message)
                return -ENOMEM;
        message[0] = (char) channel;
        if (length > 0)
                memcpy(message + 1, data, length);
        return websocket_send(session->socket, false, message, length + 1);
}

/* An empty message reports to the client that the session exists. */
static int websocket_session_start(void *state) {
        WebSocketSession *session = state;
        const SessionOptions *options = &session->wire->options;
        int r = send_channel_message(session,
                                     options->has_output  ? CHANNEL_OUTPUT
                                     : options->has_error ? CHANNEL_ERROR
                                                          : CHANNEL_STATUS,
                                     "", 0);

        if (r >= 0)
                session->wire->handlers->on_ready(session->wire->userdata);
        return r;
}

static int websocket_session_receive(void *state, const void *data, size_t length) {
        WebSocketSession *session = state;
        int r = websocket_receive(session->socket, data, length);

        if (r >= 0)
                r = session->error;
        if (r < 0 || !websocket_is_gone(session->socket))
                return r;
        session_wire_report_input_end(session->wire);
        return 1;
}

static int websocket_session_send(void *state, SessionOutput output, const void *data,
                                  size_t length) {
        return send_channel_message(
                state, output == SESSION_STANDARD_OUTPUT ? CHANNEL_OUTPUT : CHANNEL_ERROR, data,
                length);
}

static int websocket_session_finish(void *state, const char *status, const char *failure) {
        WebSocketSession *session = state;
        const char *text = session->wire->protocol->has_json_status ? status : failure;
        int r = text ? send_channel_message(session, CHANNEL_STATUS, text, strlen(text)) : 0;

        return r < 0 ? r : websocket_close(session->socket);
}

const SessionWireType session_wire_websocket = {
        .new = websocket_session_new,
        .free = websocket_session_free,
        .start = websocket_session_start,
        .receive = websocket_session_receive,
        .send = websocket_session_send,
        .finish = websocket_session_finish,
};
