/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/node-api/http/byte-queue.h"

#include "common/array.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

/* Moves no more bytes than have been consumed, so that each byte is moved at most once on
 * average. */
static void drop_consumed_bytes(ByteQueue *queue) {
        size_t waiting = byte_queue_length(queue);

        if (queue->start == 0 || queue->start < waiting)
                return;
        memmove(queue->data, queue->data + queue->start, waiting);
        queue->start = 0;
        queue->end = waiting;
}

int byte_queue_append(ByteQueue *queue, size_t max_bytes, const void *data, size_t length) {
        size_t waiting = byte_queue_length(queue);

        if (length == 0)
                return 0;
        if (waiting > max_bytes || length > max_bytes - waiting)
                return -ENOBUFS;
        drop_consumed_bytes(queue);
        if (!ARRAY_RESERVE(queue->data, queue->end, length))
                return -ENOMEM;
        memcpy(queue->data + queue->end, data, length);
        queue->end += length;
        return 0;
}

void byte_queue_consume(ByteQueue *queue, size_t length) {
        assert(length <= byte_queue_length(queue));
        queue->start += length;
        if (queue->start == queue->end)
                byte_queue_done(queue);
}

void byte_queue_done(ByteQueue *queue) {
        free(queue->data);
        *queue = (ByteQueue){ 0 };
}
