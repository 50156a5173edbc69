/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Fetchers are processes that communicate with registries. They take requests from one queue, can
 * access nothing but the network, and write to the descriptor that came with the request. Their
 * output is untrusted: the requester verifies the digest. */

#include "agent/image-helper/registry/registry-client.h"

#include <stdint.h>
#include <sys/types.h>

enum {
        FETCHERS_MAX = 8,
        FETCH_NAME_SIZE = 160,
        FETCH_MESSAGE_SIZE = 1024,
        FETCH_DOCUMENT = UINT16_MAX /* instead of a layer's number */
};

/* The ID of a request: for a layer in an attempt, or for a document, numbered in order. */
static inline uint32_t fetch_id(uint32_t count, size_t layer) {
        return count << 16 | (uint16_t) layer;
}

static inline size_t fetch_id_layer(uint32_t id) {
        return (uint16_t) id;
}

typedef struct FetcherPool {
        int fd; /* for requests and replies */
        pid_t pids[FETCHERS_MAX];
        size_t n;
        uint32_t n_documents; /* number of requested documents */
} FetcherPool;

typedef struct FetchRequest {
        uint32_t id;
        uint32_t first; /* the endpoint to try first */
        RegistryObjectKind kind;
        char name[FETCH_NAME_SIZE]; /* a tag or digest */
        uint64_t from;              /* bytes that the descriptor already contains */
        uint64_t size_max;
} FetchRequest;

typedef struct FetchReply {
        uint32_t id;
        uint32_t endpoint;
        int secret; /* index of the Secret whose credentials were used */
        int r;      /* result of registry_client_get() */
        char media_type[128];
        char message[FETCH_MESSAGE_SIZE];
} FetchReply;

/* Starts the fetchers; to be called before privileges are dropped. 'close_in_fetcher' lists
 * descriptors that they must not have, terminated by a negative number. */
int fetcher_pool_start(Endpoints *endpoints, size_t n, const int *close_in_fetcher,
                       FetcherPool *ret, Error *reterr);

/* Queues a request. Bytes are written to 'fd'; from time to time a byte is written to the pipe
 * 'wakeup_fd', unless it is negative. Both are borrowed. 0 or -errno. */
int fetcher_pool_submit(const FetcherPool *fetchers, const FetchRequest *request, int fd,
                        int wakeup_fd);

/* Waits for the next reply. 0, or -EPIPE if all fetchers are gone. */
int fetcher_pool_receive(const FetcherPool *fetchers, FetchReply *ret);

/* Closes the queue, after which the fetchers exit; they also do so when this process ends. */
void fetcher_pool_done(FetcherPool *fetchers);
