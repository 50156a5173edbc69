/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A client of SPDY for tests: makes the frames that client-go sends. */

#include "agent/node-api/http/byte-queue.h"
#include "agent/node-api/wire/spdy-headers.h"

#include <assert.h>
#include <stdint.h>
#define ZLIB_CONST /* input is const */
#include <zlib.h>

typedef struct SpdyClient {
        z_stream deflate;
        ByteQueue out; /* data to be sent */
} SpdyClient;

static inline void spdy_client_init(SpdyClient *client) {
        unsigned char dictionary[2048];
        size_t n = spdy_dictionary(dictionary, sizeof(dictionary));

        *client = (SpdyClient){ 0 };
        assert(deflateInit(&client->deflate, Z_BEST_COMPRESSION) == Z_OK);
        assert(deflateSetDictionary(&client->deflate, dictionary, (uInt) n) == Z_OK);
}

static inline void spdy_client_done(SpdyClient *client) {
        (void) deflateEnd(&client->deflate);
        byte_queue_done(&client->out);
}

static inline void spdy_client_put(SpdyClient *client, const void *data, size_t length) {
        assert(byte_queue_append(&client->out, SIZE_MAX, data, length) >= 0);
}

static inline void spdy_client_put_number(SpdyClient *client, uint32_t number) {
        unsigned char bytes[] = { (unsigned char) (number >> 24), (unsigned char) (number >> 16),
                                  (unsigned char) (number >> 8), (unsigned char) number };

        spdy_client_put(client, bytes, sizeof(bytes));
}

static inline void spdy_client_control(SpdyClient *client, unsigned type, unsigned flags,
                                       const void *payload, size_t length) {
        spdy_client_put_number(client, 0x80030000U | type);
        spdy_client_put_number(client, flags << 24 | (uint32_t) length);
        spdy_client_put(client, payload, length);
}

/* SYN_STREAM with this block of headers, which is compressed. */
static inline void spdy_client_open_raw(SpdyClient *client, uint32_t id, unsigned flags,
                                        const void *block, size_t length) {
        enum {
                COMPRESSED_MAX = 1024 * 1024
        };
        unsigned char *frame = calloc(1, COMPRESSED_MAX);

        assert(frame);
        frame[0] = (unsigned char) (id >> 24);
        frame[1] = (unsigned char) (id >> 16);
        frame[2] = (unsigned char) (id >> 8);
        frame[3] = (unsigned char) id;
        client->deflate.next_in = block;
        client->deflate.avail_in = (uInt) length;
        client->deflate.next_out = frame + 10;
        client->deflate.avail_out = COMPRESSED_MAX - 10;
        assert(deflate(&client->deflate, Z_SYNC_FLUSH) == Z_OK);
        spdy_client_control(client, 1, flags, frame, COMPRESSED_MAX - client->deflate.avail_out);
        free(frame);
}

/* With headers: name, value, name, value, NULL. */
static inline void spdy_client_open(SpdyClient *client, uint32_t id, unsigned flags,
                                    const char *const *headers) {
        unsigned char block[4096] = { 0 };
        size_t n = 4;

        for (; *headers; headers++) {
                size_t length = strlen(*headers);

                block[n + 2] = (unsigned char) (length >> 8);
                block[n + 3] = (unsigned char) length;
                memcpy(block + n + 4, *headers, length);
                n += 4 + length;
                block[3]++;
        }
        block[3] /= 2;
        spdy_client_open_raw(client, id, flags, block, n);
}

static inline void spdy_client_data(SpdyClient *client, uint32_t id, unsigned flags,
                                    const char *text) {
        spdy_client_put_number(client, id);
        spdy_client_put_number(client, flags << 24 | (uint32_t) strlen(text));
        spdy_client_put(client, text, strlen(text));
}

static inline void spdy_client_two_numbers(SpdyClient *client, unsigned type, uint32_t first,
                                           uint32_t second) {
        unsigned char payload[8];

        for (unsigned i = 0; i < 4; i++) {
                payload[i] = (unsigned char) (first >> (24 - 8 * i));
                payload[4 + i] = (unsigned char) (second >> (24 - 8 * i));
        }
        spdy_client_control(client, type, 0, payload, sizeof(payload));
}

static inline void spdy_client_ping(SpdyClient *client, uint32_t id) {
        unsigned char payload[] = { (unsigned char) (id >> 24), (unsigned char) (id >> 16),
                                    (unsigned char) (id >> 8), (unsigned char) id };

        spdy_client_control(client, 6, 0, payload, sizeof(payload));
}
