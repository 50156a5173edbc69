/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What both sides of a WebSocket's opening handshake (RFC 6455) compute. */

#include "common/macros.h"

enum {
        HANDSHAKE_SIZE = 29 /* 28 digits and a NUL */
};

/* The value of Sec-WebSocket-Accept for a Sec-WebSocket-Key. Returns the buffer. */
char *handshake_accept(const char *key, char ret[HANDSHAKE_SIZE]);

/* A fresh Sec-WebSocket-Key: 24 digits. Returns the buffer. */
char *handshake_key(char ret[HANDSHAKE_SIZE]);
