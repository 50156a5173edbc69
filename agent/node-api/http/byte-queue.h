/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Bytes that wait to be written, in order. Protocols, which do not depend on a socket, append them;
 * the connection consumes and writes them. */

#include "common/macros.h"

typedef struct ByteQueue {
        char *data;
        size_t start, end; /* of the waiting data */
} ByteQueue;

/* Appends a copy. 0; -ENOBUFS if more than 'max_bytes' would wait; -ENOMEM. */
int byte_queue_append(ByteQueue *queue, size_t max_bytes, const void *data, size_t length);

static inline size_t byte_queue_length(const ByteQueue *queue) {
        return queue->end - queue->start;
}

static inline const char *byte_queue_bytes(const ByteQueue *queue) {
        return queue->data + queue->start;
}

/* Removes the first bytes, at most byte_queue_length(). The memory of an empty queue is freed. */
void byte_queue_consume(ByteQueue *queue, size_t length);

void byte_queue_done(ByteQueue *queue);
