/* SPDX-License-Identifier: Apache-2.0 */

/* A session over a WebSocket: its streams are channels. */

#include "agent/node-api/session/channel-socket.h"
#include "agent/node-api/wire/session-wire-private.h"
#include "common/channels.h"

#include <errno.h>
#include <stdlib.h>

typedef struct WebSocketSession {
        SessionWire *wire;
        ChannelSocket *socket;
} WebSocketSession;

static void on_session_channel_data(unsigned char channel, const char *data, size_t length,
                                    void *userdata) {
        const WebSocketSession *session = userdata;
        SessionWire *wire = session->wire;

        switch (channel) {
        case CHANNEL_INPUT:
                session_wire_report_input(wire, data, length);
                break;
        case CHANNEL_RESIZE:
                session_wire_report_resize(wire, data, length);
                break;
        case CHANNEL_CLOSE: /* the first byte of the message, however the message is split */
                if (wire->protocol->has_close_signal &&
                    channel_socket_is_first_data(session->socket) && data[0] == CHANNEL_INPUT)
                        session_wire_report_input_end(wire);
                break;
        default:
                break; /* the kubelet ignores them too */
        }
}

static void websocket_session_free(void *state) {
        WebSocketSession *session = state;

        channel_socket_free(session->socket);
        free(session);
}

static int websocket_session_new(SessionWire *wire, void **ret_state) {
        WebSocketSession *session = calloc(1, sizeof(*session));
        int r;

        if (!session)
                return -ENOMEM;
        session->wire = wire;
        r = channel_socket_new(wire->protocol->is_base64, on_session_channel_data, session,
                               wire->output, &session->socket);
        if (r < 0) {
                free(session);
                return r;
        }
        *ret_state = session;
        return 0;
}

/* An empty message notifies the client that the session exists. */
static int websocket_session_start(void *state) {
        WebSocketSession *session = state;
        const SessionOptions *options = &session->wire->options;
        int r = channel_socket_send(session->socket,
                                    options->has_output  ? CHANNEL_OUTPUT
                                    : options->has_error ? CHANNEL_ERROR
                                                         : CHANNEL_STATUS,
                                    "", 0);

        if (r < 0)
                return r;
        session->wire->handlers->on_ready(session->wire->userdata);
        return 0;
}

static int websocket_session_receive(void *state, const void *data, size_t length) {
        WebSocketSession *session = state;
        int r = channel_socket_receive(session->socket, data, length);

        if (r > 0)
                session_wire_report_input_end(session->wire);
        return r;
}

static int websocket_session_send(void *state, SessionOutput output, const void *data,
                                  size_t length) {
        WebSocketSession *session = state;

        return channel_socket_send(
                session->socket, output == SESSION_STANDARD_OUTPUT ? CHANNEL_OUTPUT : CHANNEL_ERROR,
                data, length);
}

static int websocket_session_finish(void *state, const char *status, const char *failure) {
        WebSocketSession *session = state;
        const char *text = session->wire->protocol->has_json_status ? status : failure;
        int r = text ? channel_socket_send(session->socket, CHANNEL_STATUS, text, strlen(text)) : 0;

        return r < 0 ? r : channel_socket_close(session->socket);
}

const SessionWireType session_wire_websocket = {
        .new = websocket_session_new,
        .free = websocket_session_free,
        .start = websocket_session_start,
        .receive = websocket_session_receive,
        .send = websocket_session_send,
        .finish = websocket_session_finish,
};
