/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* TLS between a client's connection and a local socket, on which the rest of the program reads and
 * writes plaintext. Each direction buffers little, one record or one batch of records: if one side
 * does not read, reading from the other side pauses, but nothing else. After HTTP has ended, large
 * amounts of data are passed by functions, without that socket. */

#include "agent/node-api/http/byte-queue.h"
#include "agent/node-api/tls/tls-credentials.h"

#include <sys/types.h>
#include <systemd/sd-event.h>

typedef struct TlsStream TlsStream;

typedef struct TlsStreamHandlers {
        /* The handshake is complete. 'fd' is the other end of the socket, owned by the callback. */
        void (*on_open)(TlsStream *stream, int fd, void *userdata);

        /* No more data passes. The callee frees the stream, now or later. */
        void (*on_closed)(TlsStream *stream, void *userdata);
} TlsStreamHandlers;

/* 'fd' is a connected non-blocking socket, which is owned from now on. Takes a reference to
 * 'credentials'. 0 or -errno. */
int tls_stream_new(sd_event *event, int fd_consume, TlsCredentials *credentials,
                   const TlsStreamHandlers *handlers, void *userdata, TlsStream **ret);
TlsStream *tls_stream_free(TlsStream *stream);
DEFINE_CLEANUP(TlsStream *, tls_stream_free)

/* Puts the data written to the socket of on_open() so far and the data written later into different
 * records. */
void tls_stream_end_record(TlsStream *stream);

/* From now on the caller waits for events on the client's connection, which is returned, and calls
 * the functions below. 'fd' is the one from on_open(): data that was not read from it is appended
 * to 'early'. -errno: the client has disconnected, or has not read the replies. */
int tls_stream_take_over(TlsStream *stream, int fd, ByteQueue *early);

/* Like recv() and send() on a non-blocking socket, but return -errno. After -EAGAIN, the caller
 * must send the same bytes again; more bytes may follow them. */
ssize_t tls_stream_receive(TlsStream *stream, void *buffer, size_t size);
ssize_t tls_stream_send(TlsStream *stream, const void *data, size_t length);
void tls_stream_shut(TlsStream *stream); /* for writing */

/* The caller must make no more calls. on_closed() follows, now or later. */
void tls_stream_end(TlsStream *stream);

/* The signer's ticket for the client's certificate; NULL: the client has sent none, or an invalid
 * one, and then the second function returns true. */
const char *tls_stream_ticket(const TlsStream *stream);
bool tls_stream_has_refused_certificate(const TlsStream *stream);
