/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The processes that speak to registries: a few that take requests from one queue, have nothing but
 * the network, and write what comes into the descriptor that came with the request. Nothing of what
 * they say is believed; who asked checks the digest. */

#include "agent/image-helper/endpoint.h"

#include <stdint.h>
#include <sys/types.h>

enum {
        FETCHERS_MAX = 8,
        FETCH_NAME_SIZE = 160,
        FETCH_MESSAGE_SIZE = 1024
};

typedef struct FetcherPool {
        int fd; /* requests go in, replies come out */
        pid_t pids[FETCHERS_MAX];
        size_t n;
} FetcherPool;

typedef struct FetchRequest {
        uint32_t id;
        uint32_t first; /* the endpoint to ask first */
        bool is_blob;
        char name[FETCH_NAME_SIZE]; /* tag or digest */
        uint64_t from;              /* bytes that the descriptor has already */
        uint64_t size_max;
} FetchRequest;

typedef struct FetchReply {
        uint32_t id;
        uint32_t endpoint;
        int r; /* as registry_client_get() */
        char media_type[128];
        char message[FETCH_MESSAGE_SIZE];
} FetchReply;

/* Starts them, while there are privileges to give up. 'close_in_fetcher', ended by a negative
 * number, are descriptors that they have no business with. */
int fetcher_pool_start(const Endpoints *endpoints, size_t n, const int *close_in_fetcher,
                       FetcherPool *ret, Error *reterr);

/* Queues a request. Bytes are written to 'fd'; once in a while one byte goes into the pipe
 * 'doorbell', if that is no negative number. Neither is taken over. 0 or -errno. */
int fetcher_pool_submit(const FetcherPool *fetchers, const FetchRequest *request, int fd,
                        int wakeup_fd);

/* Waits for the next reply. 0, or -EPIPE where they all are gone. */
int fetcher_pool_receive(const FetcherPool *fetchers, FetchReply *ret);

/* Lets go of them: they end with the queue, or with us. */
void fetcher_pool_done(FetcherPool *fetchers);
