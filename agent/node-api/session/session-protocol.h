/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The versions of the protocol of exec and attach (remotecommand: v5.channel.k8s.io, …), and the
 * choice of one. */

#include "common/macros.h"

typedef enum SessionTransport {
        SESSION_OVER_SPDY,
        SESSION_OVER_WEBSOCKET,
} SessionTransport;

typedef struct SessionProtocol {
        SessionTransport transport;
        const char *name;       /* in the handshake; "" for a WebSocket without a subprotocol */
        bool is_base64;         /* messages are text: a digit for the channel, then base64 */
        bool has_close_signal;  /* the client can end a channel */
        bool has_no_input_end;  /* the input ends as soon as all streams are open */
        bool has_resize_stream; /* a client with a terminal opens a resize stream */
        bool has_json_status;   /* the result is a v1.Status; otherwise the text of a failure */
} SessionProtocol;

/* Chooses by the header X-Stream-Protocol-Version: the first one that the client offers and the
 * server supports, or NULL. Several headers are joined with commas. */
const SessionProtocol *session_protocol_of_spdy(const char *offered);

/* Chooses by the header Sec-WebSocket-Protocol; NULL (not sent) is also a valid offer. */
const SessionProtocol *session_protocol_of_websocket(const char *offered);

/* The n-th protocol over SPDY, for the reply to a client that has offered none of them; NULL at the
 * end. */
const char *session_spdy_protocol_name(size_t n);

/* The next word of a comma-separated list: 1 with its start and length, and '*list' after it; 0 at
 * the end. */
int next_protocol_word(const char **list, const char **ret, size_t *ret_length);

/* Whether the list contains a name. */
bool is_protocol_offered(const char *offered, const char *name);
