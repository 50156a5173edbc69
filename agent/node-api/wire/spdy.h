/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The server's end of a SPDY/3.1 connection, as used by Kubernetes clients: they open streams, the
 * server accepts them, and both sides send data. Pure: bytes in, events out; calls in, bytes out.
 *
 * As in the library that clients use, there is no flow control: neither side sends or awaits
 * WINDOW_UPDATE, and a side that cannot accept more data stops reading. */

#include "agent/node-api/http/byte-queue.h"
#include "agent/node-api/wire/spdy-headers.h"

#include <stdint.h>
#include <sys/types.h>

enum {
        SPDY_STREAMS_MAX = 512,             /* limit of open streams; further ones are refused */
        SPDY_CONTROL_FRAME_MAX = 16 * 1024, /* in bytes; data frames are not kept, so they are not
                                             * limited */
        SPDY_OUTPUT_MAX = 1024 * 1024,      /* bytes waiting to be written */
};

typedef enum SpdyResetStatus {
        SPDY_PROTOCOL_ERROR = 1,
        SPDY_REFUSED_STREAM = 3,
        SPDY_CANCEL = 5,
} SpdyResetStatus;

typedef struct Spdy Spdy;

/* Called from spdy_receive(). They may call the functions below, but must not free the
 * connection. */
typedef struct SpdyHandlers {
        /* A stream was opened. 0: it is accepted, and the reply is sent afterwards, so nothing must
         * be sent on it yet. Negative: it is reset. */
        int (*on_stream)(uint32_t stream, const SpdyHeaders *headers, void *userdata);

        /* A piece of data on an open stream; frames are not reassembled. */
        void (*on_data)(uint32_t stream, const char *data, size_t length, void *userdata);

        /* The client sends nothing more on the stream; the server still can. */
        void (*on_end)(uint32_t stream, void *userdata);

        /* The client has reset the stream, which is gone. */
        void (*on_reset)(uint32_t stream, void *userdata);
} SpdyHandlers;

/* 'output' receives the data to be written; it, 'handlers' and 'userdata' are borrowed. 0 or
 * -ENOMEM. */
int spdy_new(const SpdyHandlers *handlers, void *userdata, ByteQueue *output, Spdy **ret);
Spdy *spdy_free(Spdy *spdy);
DEFINE_CLEANUP(Spdy *, spdy_free)

/* Takes bytes from the client. 0; -EPROTO: the client violates the protocol or a limit; -ENOBUFS:
 * it does not read its replies; -ENOMEM. After an error the connection must be closed. */
int spdy_receive(Spdy *spdy, const void *data, size_t length);

/* The client has sent GOAWAY: nothing more is read from it. */
bool spdy_is_gone(const Spdy *spdy);

/* Sends data on a stream and, if 'is_last', ends the server's half of it. Does nothing if the
 * stream is gone or has ended. 0; -ENOBUFS, -ENOMEM. */
int spdy_send(Spdy *spdy, uint32_t id, const void *data, size_t length, bool is_last);

/* Resets a stream, which then no longer exists; an unknown one is ignored. 0; -ENOBUFS, -ENOMEM. */
int spdy_reset(Spdy *spdy, uint32_t id, SpdyResetStatus status);

/* Resets all streams and sends GOAWAY, the last frame. 0; -ENOBUFS, -ENOMEM. */
int spdy_go_away(Spdy *spdy);
