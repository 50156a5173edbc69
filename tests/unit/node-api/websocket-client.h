/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A client of WebSocket for tests: makes masked frames. */

#include "agent/node-api/http/byte-queue.h"

#include <assert.h>
#include <stdint.h>

enum {
        WEBSOCKET_CONTINUATION = 0,
        WEBSOCKET_TEXT = 1,
        WEBSOCKET_BINARY = 2,
        WEBSOCKET_CLOSE = 8,
        WEBSOCKET_PING = 9,
        WEBSOCKET_FIN = 0x80,
};

/* 'head' is an opcode, with WEBSOCKET_FIN in the last frame of a message. */
static inline void websocket_client_frame(ByteQueue *out, unsigned head, const void *data,
                                          size_t length) {
        static const unsigned char mask[4] = { 0x12, 0x34, 0x56, 0x78 };
        unsigned char start[14] = { (unsigned char) head };
        size_t n = 2;

        if (length < 126) {
                start[1] = (unsigned char) (0x80 | length);
        } else if (length <= UINT16_MAX) {
                start[1] = 0x80 | 126;
                start[2] = (unsigned char) (length >> 8);
                start[3] = (unsigned char) length;
                n = 4;
        } else {
                start[1] = 0x80 | 127;
                for (unsigned i = 0; i < 8; i++)
                        start[2 + i] = (unsigned char) ((uint64_t) length >> (56 - 8 * i));
                n = 10;
        }
        memcpy(start + n, mask, sizeof(mask));
        assert(byte_queue_append(out, SIZE_MAX, start, n + sizeof(mask)) >= 0);
        for (size_t i = 0; i < length; i++) {
                unsigned char byte = ((const unsigned char *) data)[i] ^ mask[i % 4];

                assert(byte_queue_append(out, SIZE_MAX, &byte, 1) >= 0);
        }
}

static inline void websocket_client_text(ByteQueue *out, const char *text) {
        websocket_client_frame(out, WEBSOCKET_FIN | WEBSOCKET_TEXT, text, strlen(text));
}
