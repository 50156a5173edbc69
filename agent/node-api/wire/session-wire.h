/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The streams of one exec or attach session, for each protocol that a client may speak. Pure: bytes
 * of the client in, streams out; calls in, bytes for the client out. */

#include "agent/node-api/http/byte-queue.h"
#include "agent/node-api/session/session-protocol.h"

enum {
        SESSION_RESIZE_MAX = 256, /* bytes of {"Width":80,"Height":24} */
};

/* The parameters of the client's query. */
typedef struct SessionOptions {
        bool has_input, has_output, has_error, has_terminal;
} SessionOptions;

typedef enum SessionOutput {
        SESSION_STANDARD_OUTPUT,
        SESSION_STANDARD_ERROR,
} SessionOutput;

typedef struct SessionWire SessionWire;

/* Called from session_wire_receive(). They may call the functions below, but must not free the
 * wire. */
typedef struct SessionWireHandlers {
        /* All streams announced in the query are open: the command can start. */
        void (*on_ready)(void *userdata);
        void (*on_input)(const char *data, size_t length, void *userdata);
        void (*on_input_end)(void *userdata);
        void (*on_resize)(unsigned width, unsigned height, void *userdata);
} SessionWireHandlers;

/* 'output' receives the data to be written; it, 'protocol', 'handlers' and 'userdata' are borrowed.
 * 0 or -ENOMEM. */
int session_wire_new(const SessionProtocol *protocol, const SessionOptions *options,
                     const SessionWireHandlers *handlers, void *userdata, ByteQueue *output,
                     SessionWire **ret);
SessionWire *session_wire_free(SessionWire *wire);
DEFINE_CLEANUP(SessionWire *, session_wire_free)

/* Starts the session: a WebSocket is ready at once. To be called after the reply to the
 * handshake. */
int session_wire_start(SessionWire *wire);

/* Takes bytes from the client. 0; 1: it has closed the connection properly, and sends nothing more;
 * -errno: the connection must be closed. */
int session_wire_receive(SessionWire *wire, const void *data, size_t length);

/* Sends output of the command; dropped if the client did not request it. 0 or -errno. */
int session_wire_send(SessionWire *wire, SessionOutput output, const void *data, size_t length);

/* Ends all streams, with the result as a v1.Status in JSON, and the connection. 'failure' is its
 * message, for protocols without JSON; NULL: success. 0 or -errno. */
int session_wire_finish(SessionWire *wire, const char *status, const char *failure);
