/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The shim's side of its copier: a child that reads all that containers write, so that the shim,
 * which has all privileges, does not (copier-process.h).
 *
 * The shim keeps copies of the descriptors that it sends. A copier that ends is replaced, and the
 * next one gets everything again; meanwhile the pipes stay open, and writers wait when they are
 * full. Sending never waits: data that the copier does not accept is queued. */

#include "agent/shim/copier-channel.h"
#include "agent/shim/epoll-loop.h"

typedef struct Copier Copier;
typedef struct QueuedCopierMessage QueuedCopierMessage;

typedef struct CopierOperations {
        /* A new copier has no state: send it all outputs and captures. */
        void (*on_started)(Copier *copier);
        /* COPIER_DRAINED, COPIER_DROPPED or COPIER_CAPTURED, with an 'id' that may be wrong. 'data'
         * has 'length' bytes and a NUL. */
        void (*on_message)(Copier *copier, const CopierMessage *message, const char *data,
                           size_t length);
        /* The answer to COPIER_OPEN, COPIER_ROTATE or COPIER_JOURNAL, whose descriptors are closed
         * once it has been sent. */
        void (*on_request)(Copier *copier, const CopierMessage *request, CopierMessage *answer);
} CopierOperations;

struct Copier {
        const CopierOperations *operations;
        int epoll_fd;
        pid_t pid; /* 0: none runs */
        EpollSource socket;
        EpollSource files;
        QueuedCopierMessage *queue;
        unsigned last_id;
        uint64_t started_at;    /* awake time */
        uint64_t start_at;      /* awake time when the next one is due; USEC_INFINITY: one runs */
        uint64_t file_size_max; /* of its output; 0: no limit */
};

#define COPIER_NULL \
        ((Copier){  \
                .socket = EPOLL_SOURCE_NULL, .files = EPOLL_SOURCE_NULL, .start_at = UINT64_MAX })

/* Starts the first one; if no process can be made now, that is tried again. 0 or -errno. */
int copier_init(Copier *copier, int epoll_fd, const CopierOperations *operations);

/* A number for an output or a capture, > 0. */
unsigned copier_new_id(Copier *copier);

/* Sends a message, or drops it if there is no copier: the next one gets the whole state. The
 * descriptors stay the caller's. False: it was dropped. */
bool copier_send(Copier *copier, const CopierMessage *message, const void *data, size_t length);

/* Limits the files that it writes, to be called when containerLogMaxSize is known. */
void copier_set_log_limit(Copier *copier, uint64_t max_size);

/* It does not answer: it is killed, and another one is started. */
void copier_replace(Copier *copier);

/* True if 'pid' was the copier. */
bool copier_reap(Copier *copier, pid_t pid);

/* Starts the next one when it is due, at 'start_at'. */
void copier_continue(Copier *copier, uint64_t now_awake);

/* The copier writes all its data, and ends; or is killed when that takes too long. */
void copier_done(Copier *copier);
