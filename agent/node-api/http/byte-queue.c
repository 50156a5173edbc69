/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/node-api/http/byte-queue.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

enum {
        QUEUE_SIZE_MIN = 4096,
};

static int reserve_queue_bytes(ByteQueue *queue, size_t length) {
        size_t waiting = byte_queue_length(queue), size = MAX(queue->size, (size_t) QUEUE_SIZE_MIN);
        char *larger;

        if (queue->start > 0) {
                memmove(queue->data, queue->data + queue->start, waiting);
                queue->start = 0;
                queue->end = waiting;
        }
        while (size - waiting < length)
                size *= 2;
        if (size == queue->size)
                return 0;
        larger = realloc(queue->data, size);
        if (!larger)
                return -ENOMEM;
        queue->data = larger;
        queue->size = size;
        return 0;
}

int byte_queue_append(ByteQueue *queue, size_t max_bytes, const void *data, size_t length) {
        size_t waiting = byte_queue_length(queue);

        if (length == 0)
                return 0;
        if (waiting > max_bytes || length > max_bytes - waiting)
                return -ENOBUFS;
        if (queue->size - queue->end < length) {
                int r = reserve_queue_bytes(queue, length);

                if (r < 0)
                        return r;
        }
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
