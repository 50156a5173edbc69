/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Both ends of gRPC over HTTP/2 with prior knowledge on a stream socket, with libnghttp2, without
 * threads and without waiting. The owner polls the descriptor for grpc_connection_events() and
 * calls grpc_connection_process(). The peer is not trusted: messages, headers, streams and the send
 * queue are limited.
 *
 * Callbacks may start, answer and cancel calls of any connection, but must not free the connection
 * that calls them. */

#include "common/error.h"

#include <stdint.h>

typedef enum GrpcCode {
        GRPC_OK = 0,
        GRPC_CANCELLED = 1,
        GRPC_UNKNOWN = 2,
        GRPC_INVALID_ARGUMENT = 3,
        GRPC_DEADLINE_EXCEEDED = 4,
        GRPC_NOT_FOUND = 5,
        GRPC_RESOURCE_EXHAUSTED = 8,
        GRPC_FAILED_PRECONDITION = 9,
        GRPC_ABORTED = 10,
        GRPC_OUT_OF_RANGE = 11,
        GRPC_UNIMPLEMENTED = 12,
        GRPC_INTERNAL = 13,
        GRPC_UNAVAILABLE = 14,
} GrpcCode;

/* "DeadlineExceeded", as printed by Go's clients; "Code(99)" is "Unknown". */
const char *grpc_code_name(GrpcCode code);

#define GRPC_MESSAGE_MAX ((size_t) 4 * 1024 * 1024)

enum {
        GRPC_STREAMS_MAX = 128,     /* maximum concurrent streams of a peer */
        GRPC_ERROR_TEXT_MAX = 4096, /* bytes of a status message; longer ones are truncated */
};

typedef struct GrpcConnection GrpcConnection;
typedef struct GrpcCall GrpcCall;

/* ---- connections ---- */

typedef struct GrpcServerHandlers {
        /* A request with its only message, which is borrowed. It is answered by grpc_call_reply()
         * or grpc_call_fail(), now or later; until then the owner keeps the call. */
        void (*on_request)(GrpcCall *call, const char *path, const char *message, size_t length,
                           void *userdata);
        /* A request has ended without an answer: its client disconnected, or its deadline passed.
         * The pointer is no longer valid. */
        void (*on_gone)(GrpcCall *call, void *userdata);
        void *userdata;
} GrpcServerHandlers;

/* Takes ownership of the descriptor of a connected, non-blocking socket, even on failure. 0 or
 * -ENOMEM. */
int grpc_server_new(int fd, const GrpcServerHandlers *handlers, GrpcConnection **ret);
int grpc_client_new(int fd, GrpcConnection **ret);

/* Ends the remaining calls first: with GRPC_UNAVAILABLE, or by on_gone(). NULL is allowed. */
GrpcConnection *grpc_connection_free(GrpcConnection *connection);
DEFINE_CLEANUP(GrpcConnection *, grpc_connection_free)

int grpc_connection_fd(const GrpcConnection *connection);

/* POLLIN, POLLOUT. 0: the connection has ended. */
short grpc_connection_events(const GrpcConnection *connection);

/* Reads and writes as much as possible, and ends calls whose deadline has passed. 0; -errno: the
 * connection has ended, and must be freed. */
int grpc_connection_process(GrpcConnection *connection, uint64_t now_usec);

/* The time of the next deadline; UINT64_MAX: none. */
uint64_t grpc_connection_deadline(const GrpcConnection *connection);

size_t grpc_connection_calls(const GrpcConnection *connection);

/* ---- calls of a client ---- */

typedef struct GrpcCallHandlers {
        /* One message of the answer, borrowed. */
        void (*on_message)(const char *message, size_t length, void *userdata);
        /* Called once, and last: the pointer to the call is invalid afterwards. 'text' is "" on
         * success. */
        void (*on_end)(GrpcCode code, const char *text, void *userdata);
        void *userdata;
} GrpcCallHandlers;

/* 'path' is "/package.Service/Method". The answer to a call that is not a stream must have exactly
 * one message; otherwise it fails with GRPC_INTERNAL. 0, and sets '*ret' unless it is NULL;
 * -ENOTCONN, -ENOMEM. */
int grpc_call_start(GrpcConnection *connection, const char *path, const void *message,
                    size_t length, bool is_stream, uint64_t deadline_usec,
                    const GrpcCallHandlers *handlers, GrpcCall **ret);

/* Does not call on_end(). */
void grpc_call_cancel(GrpcCall *call);

/* ---- answers of a server ---- */

/* After the answer, the owner must not use the call. */
void grpc_call_reply(GrpcCall *call, const void *message, size_t length);
void grpc_call_fail(GrpcCall *call, GrpcCode code, const char *format, ...) printf_like(3, 4);

/* For the caller's own use; initially NULL. */
void grpc_call_set_userdata(GrpcCall *call, void *userdata);
void *grpc_call_userdata(const GrpcCall *call);
