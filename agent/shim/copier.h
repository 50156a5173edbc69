/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The shim's side of its copier: a child that reads everything that containers write, because the
 * shim, which has all privileges, must not (copier-process.h).
 *
 * The shim keeps copies of the descriptors that it sends. A copier that ends is replaced, and the
 * next one receives everything again; in the meantime the pipes stay open, and writers block when
 * they are full. Sending never waits: data that the copier does not accept is queued. */

#include "agent/shim/copier-channel.h"
#include "agent/shim/epoll-loop.h"

typedef struct Copier Copier;
typedef struct QueuedCopierMessage QueuedCopierMessage;

typedef struct CopierOperations {
        /* Called for a new copier, which has no state; must send it all outputs and captures. */
        void (*on_started)(Copier *copier);
        /* COPIER_DRAINED, COPIER_DROPPED or COPIER_CAPTURED, with an 'id' that may be wrong. 'data'
         * has 'length' bytes and a NUL. */
        void (*on_message)(Copier *copier, const CopierMessage *message, const char *data,
                           size_t length);
        /* A COPIER_OPEN, COPIER_ROTATE or COPIER_JOURNAL request; the descriptors of the answer are
         * closed once it has been sent. */
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
        uint64_t start_at;      /* awake time when the next one is due; USEC_INFINITY: one is
                                 * running */
        uint64_t file_size_max; /* limit of its output; 0: no limit */
};

#define COPIER_NULL \
        ((Copier){  \
                .socket = EPOLL_SOURCE_NULL, .files = EPOLL_SOURCE_NULL, .start_at = UINT64_MAX })

/* Starts the first copier; if no process can be created now, this is retried. 0 or -errno. */
int copier_init(Copier *copier, int epoll_fd, const CopierOperations *operations);

/* Returns a new number for an output or a capture, > 0. */
unsigned copier_new_id(Copier *copier);

/* Sends a message, or drops it if there is no copier: the next one receives the whole state. The
 * caller keeps the descriptors. False: it was dropped. */
bool copier_send(Copier *copier, const CopierMessage *message, const void *data, size_t length);

/* Limits the size of files that it writes; to be called when containerLogMaxSize is known. */
void copier_set_log_limit(Copier *copier, uint64_t max_size);

/* The copier does not respond: kills it, and starts another one. */
void copier_replace(Copier *copier);

/* True if 'pid' was the copier. */
bool copier_reap(Copier *copier, pid_t pid);

/* Starts the next one when it is due, at 'start_at'. */
void copier_continue(Copier *copier, uint64_t now_awake);

/* Waits until the copier has written all its data and exits; kills it if this takes too long. */
void copier_done(Copier *copier);
