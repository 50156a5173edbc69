/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A stream socket on the event loop with a queue of data to be written. A consumer that cannot take
 * more data pauses the reading; a producer checks the length of the queue. */

#include "agent/node-api/http/byte-queue.h"

#include <stdint.h>
#include <sys/types.h>
#include <systemd/sd-event.h>

enum {
        STREAM_QUEUE_HIGH = 64 * 1024,  /* bytes: producers stop */
        STREAM_QUEUE_MAX = 1024 * 1024, /* a limit that replies to a client may reach */
};

typedef struct StreamSocket StreamSocket;

/* The functions that replace recv(), send() and shutdown() for TLS. They return the same results,
 * but -errno for errors. After -EAGAIN, send() is called again with the same bytes, possibly
 * followed by more. */
typedef struct StreamTransport {
        ssize_t (*receive)(void *userdata, void *buffer, size_t size);
        ssize_t (*send)(void *userdata, const void *data, size_t length);
        void (*shut)(void *userdata); /* for writing */
} StreamTransport;

/* A client's connection, for a StreamSocket. */
typedef struct ClientStream {
        int fd; /* borrowed, non-blocking */
        const StreamTransport *transport;
        void *transport_userdata;
        const char *early; /* data that has already been read from it */
        size_t early_length;
        uint64_t idle_usec; /* idle time after which it ends; 0: never */
} ClientStream;

/* They may call all functions below except stream_socket_free(). */
typedef struct StreamSocketHandlers {
        void (*on_data)(const char *data, size_t length, void *userdata);
        void (*on_end)(void *userdata);     /* the peer sends nothing more */
        void (*on_written)(void *userdata); /* the loop has written a part of the queue, so there
                                             * may be room */
        void (*on_error)(int error, void *userdata); /* nothing more can be read or written;
                                                      * unwritten data is still in the queue */
} StreamSocketHandlers;

/* The descriptor is borrowed, and non-blocking. 0 or -errno. */
int stream_socket_new(sd_event *event, int fd, const StreamSocketHandlers *handlers, void *userdata,
                      StreamSocket **ret);

/* For a client, stream_socket_update() writes what the client accepts, and the loop writes only the
 * rest. on_written() is also called after the queue was full. The caller handles 'early'. */
int stream_socket_new_client(sd_event *event, const ClientStream *client,
                             const StreamSocketHandlers *handlers, void *userdata,
                             StreamSocket **ret);
StreamSocket *stream_socket_free(StreamSocket *socket);
DEFINE_CLEANUP(StreamSocket *, stream_socket_free)

/* The queue, for protocols to append to; stream_socket_update() is called afterwards. */
ByteQueue *stream_socket_queue(StreamSocket *socket);
void stream_socket_update(StreamSocket *socket);

static inline bool stream_queue_is_full(const ByteQueue *queue) {
        return byte_queue_length(queue) >= STREAM_QUEUE_HIGH;
}

/* A client whose connection is reset in the meantime is reported by on_error(). */
void stream_socket_pause_reading(StreamSocket *socket, bool is_paused);

/* After this time without any byte read or written, on_error() gets -ETIMEDOUT; 0: never. 0 or
 * -errno.
 */
int stream_socket_limit_idle(StreamSocket *socket, uint64_t idle_usec);

/* If a write detects that the peer has closed the connection, data that it sent before is still
 * read: the queue is dropped, and on_error() is called after the peer's last byte. Requires that
 * reading from the socket is not paused permanently. */
void stream_socket_read_to_the_end(StreamSocket *socket);

/* Shuts the socket down for writing once the queue is empty. */
void stream_socket_shut_when_written(StreamSocket *socket);
