/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/node-api/wire/websocket.h"

#include <errno.h>
#include <stdlib.h>
#include <wslay/wslay.h>

struct WebSocket {
        wslay_event_context_ptr context;
        const WebSocketHandlers *handlers;
        void *userdata;
        ByteQueue *output;
        int output_error; /* an error of the queue */

        const uint8_t *input; /* input of the current websocket_receive() */
        size_t input_left;
        bool is_in_control_frame;
        bool is_last_frame; /* last frame of the message */
};

static ssize_t give_websocket_input(wslay_event_context_ptr context, uint8_t *buffer, size_t size,
                                    int flags, void *userdata) {
        WebSocket *socket = userdata;
        size_t n = MIN(size, socket->input_left);

        if (n == 0) {
                wslay_event_set_error(context, WSLAY_ERR_WOULDBLOCK);
                return -1;
        }
        memcpy(buffer, socket->input, n);
        socket->input += n;
        socket->input_left -= n;
        return (ssize_t) n;
}

static ssize_t take_websocket_output(wslay_event_context_ptr context, const uint8_t *data,
                                     size_t length, int flags, void *userdata) {
        WebSocket *socket = userdata;

        socket->output_error =
                byte_queue_append(socket->output, WEBSOCKET_OUTPUT_MAX, data, length);
        if (socket->output_error >= 0)
                return (ssize_t) length;
        wslay_event_set_error(context, WSLAY_ERR_CALLBACK_FAILURE);
        return -1;
}

static void on_websocket_frame_start(wslay_event_context_ptr context,
                                     const struct wslay_event_on_frame_recv_start_arg *frame,
                                     void *userdata) {
        WebSocket *socket = userdata;

        socket->is_in_control_frame = wslay_is_ctrl_frame(frame->opcode);
        if (socket->is_in_control_frame)
                return;
        socket->is_last_frame = frame->fin;
        if (frame->opcode != WSLAY_CONTINUATION_FRAME)
                socket->handlers->on_start(frame->opcode == WSLAY_TEXT_FRAME, socket->userdata);
}

static void on_websocket_frame_piece(wslay_event_context_ptr context,
                                     const struct wslay_event_on_frame_recv_chunk_arg *piece,
                                     void *userdata) {
        WebSocket *socket = userdata;

        if (!socket->is_in_control_frame && piece->data_length > 0)
                socket->handlers->on_piece((const char *) piece->data, piece->data_length,
                                           socket->userdata);
}

static void on_websocket_frame_end(wslay_event_context_ptr context, void *userdata) {
        WebSocket *socket = userdata;

        if (!socket->is_in_control_frame && socket->is_last_frame)
                socket->handlers->on_end(socket->userdata);
}

int websocket_new(const WebSocketHandlers *handlers, void *userdata, ByteQueue *output,
                  WebSocket **ret) {
        static const struct wslay_event_callbacks callbacks = {
                .recv_callback = give_websocket_input,
                .send_callback = take_websocket_output,
                .on_frame_recv_start_callback = on_websocket_frame_start,
                .on_frame_recv_chunk_callback = on_websocket_frame_piece,
                .on_frame_recv_end_callback = on_websocket_frame_end,
        };
        WebSocket *socket = calloc(1, sizeof(*socket));

        if (!socket)
                return -ENOMEM;
        socket->handlers = handlers;
        socket->userdata = userdata;
        socket->output = output;
        if (wslay_event_context_server_init(&socket->context, &callbacks, socket) != 0) {
                free(socket);
                return -ENOMEM;
        }
        wslay_event_config_set_no_buffering(socket->context, 1);
        *ret = socket;
        return 0;
}

WebSocket *websocket_free(WebSocket *socket) {
        if (socket)
                wslay_event_context_free(socket->context);
        free(socket);
        return NULL;
}

bool websocket_is_gone(const WebSocket *socket) {
        return wslay_event_get_close_received(socket->context);
}

/* Everything that wslay has queued is written to the output immediately. */
static int flush_websocket(WebSocket *socket) {
        int r = wslay_event_send(socket->context);

        if (r == WSLAY_ERR_NOMEM)
                return -ENOMEM;
        return r == 0 ? 0 : socket->output_error;
}

int websocket_receive(WebSocket *socket, const void *data, size_t length) {
        int r, flushed;

        socket->input = data;
        socket->input_left = length;
        r = wslay_event_recv(socket->context);
        socket->input = NULL;
        socket->input_left = 0;
        flushed = flush_websocket(socket);
        if (r == WSLAY_ERR_NOMEM)
                return -ENOMEM;
        if (flushed < 0)
                return flushed;
        /* After a violation wslay sends a close frame and stops reading. */
        return r != 0 || (!wslay_event_get_read_enabled(socket->context) &&
                          !websocket_is_gone(socket))
                       ? -EPROTO
                       : 0;
}

int websocket_send(WebSocket *socket, bool is_text, const void *data, size_t length) {
        struct wslay_event_msg message = { is_text ? WSLAY_TEXT_FRAME : WSLAY_BINARY_FRAME, data,
                                           length };
        int r = wslay_event_queue_msg(socket->context, &message);

        if (r == WSLAY_ERR_NOMEM)
                return -ENOMEM;
        return r == 0 ? flush_websocket(socket) : 0; /* no more messages after a close frame */
}

int websocket_close(WebSocket *socket) {
        int r = wslay_event_queue_close(socket->context, WSLAY_CODE_NORMAL_CLOSURE, NULL, 0);

        if (r == WSLAY_ERR_NOMEM)
                return -ENOMEM;
        return r == 0 ? flush_websocket(socket) : 0;
}
