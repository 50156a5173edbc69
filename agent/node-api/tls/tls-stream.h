/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* TLS between a client's connection and a socket of our own, on which the rest of the program reads
 * and writes the plain data. Each direction holds little, one record or one batch of them: a
 * side that does not read stops the other side's reading, and nothing else. Many bytes are passed
 * without that socket, by functions, once HTTP is over. */

#include "agent/node-api/http/byte-queue.h"
#include "agent/node-api/tls/tls-credentials.h"

#include <sys/types.h>
#include <systemd/sd-event.h>

typedef struct TlsStream TlsStream;

typedef struct TlsStreamHandlers {
        /* The handshake is done. 'fd' is the other end of the socket, for the callback to own. */
        void (*on_open)(TlsStream *stream, int fd, void *userdata);

        /* No more data passes. The callee frees the stream, now or later. */
        void (*on_closed)(TlsStream *stream, void *userdata);
} TlsStreamHandlers;

/* 'fd' is a connected non-blocking socket, which is owned from the call on. 'credentials' get a
 * reference. 0 or -errno. */
int tls_stream_new(sd_event *event, int fd_consume, TlsCredentials *credentials,
                   const TlsStreamHandlers *handlers, void *userdata, TlsStream **ret);
TlsStream *tls_stream_free(TlsStream *stream);
DEFINE_CLEANUP(TlsStream *, tls_stream_free)

/* Data that was written to the socket of on_open() so far and data that is written later are in
 * different records. */
void tls_stream_end_record(TlsStream *stream);

/* From now on the caller waits for the client's connection, which is returned, and calls the
 * functions below. 'fd' is that of on_open(): data that was not read from it is appended to
 * 'early'. -errno: the client has ended, or not read the replies. */
int tls_stream_take_over(TlsStream *stream, int fd, ByteQueue *early);

/* Like recv() and send() of a non-blocking socket, but return -errno. After -EAGAIN, the caller
 * must send the same bytes again; more bytes may follow them. */
ssize_t tls_stream_receive(TlsStream *stream, void *buffer, size_t size);
ssize_t tls_stream_send(TlsStream *stream, const void *data, size_t length);
void tls_stream_shut(TlsStream *stream); /* for writing */

/* The caller waits and makes no more calls. on_closed() follows, now or later. */
void tls_stream_end(TlsStream *stream);

/* The signer's ticket for the client's certificate; NULL: it has shown none, or one that does not
 * hold, and then the second is true. */
const char *tls_stream_ticket(const TlsStream *stream);
bool tls_stream_has_refused_certificate(const TlsStream *stream);
