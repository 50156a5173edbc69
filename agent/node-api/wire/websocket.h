/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The server's end of a WebSocket, after the opening handshake. Pure: bytes in, messages out; calls
 * in, bytes out. Pings and the client's close frame are answered. */

#include "agent/node-api/http/byte-queue.h"

#include <stdint.h>

enum {
        WEBSOCKET_OUTPUT_MAX = 1024 * 1024, /* bytes waiting to be written */
};

typedef struct WebSocket WebSocket;

/* Called from websocket_receive(). Messages are passed on in pieces, as they arrive, so that none
 * is kept. They may call the functions below, but must not free the WebSocket. */
typedef struct WebSocketHandlers {
        void (*on_start)(bool is_text, void *userdata);
        void (*on_piece)(const char *data, size_t length, void *userdata);
        void (*on_end)(void *userdata);
} WebSocketHandlers;

/* 'output' receives the data to be written; it, 'handlers' and 'userdata' are borrowed. 0 or
 * -ENOMEM. */
int websocket_new(const WebSocketHandlers *handlers, void *userdata, ByteQueue *output,
                  WebSocket **ret);
WebSocket *websocket_free(WebSocket *socket);
DEFINE_CLEANUP(WebSocket *, websocket_free)

/* Takes bytes from the client. 0; -EPROTO: the client violates the protocol, which a close frame
 * reports; -ENOBUFS: it does not read its replies; -ENOMEM. After an error the connection must be
 * closed. */
int websocket_receive(WebSocket *socket, const void *data, size_t length);

/* The client has sent its close frame. */
bool websocket_is_gone(const WebSocket *socket);

/* Sends a message. Does nothing after a close frame. 0; -ENOBUFS, -ENOMEM. */
int websocket_send(WebSocket *socket, bool is_text, const void *data, size_t length);

/* Sends the close frame of a normal end. 0; -ENOBUFS, -ENOMEM. */
int websocket_close(WebSocket *socket);
