/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The values that both sides of a WebSocket's opening handshake (RFC 6455) compute. */

#include "common/macros.h"

enum {
        WEBSOCKET_ACCEPT_SIZE = 29 /* 28 base64 characters and a NUL */
};

/* The value of Sec-WebSocket-Accept for a Sec-WebSocket-Key. Returns the buffer. */
char *websocket_accept_key(const char *key, char ret[WEBSOCKET_ACCEPT_SIZE]);

/* A new Sec-WebSocket-Key: 24 base64 characters. Returns the buffer. */
char *websocket_new_key(char ret[WEBSOCKET_ACCEPT_SIZE]);
