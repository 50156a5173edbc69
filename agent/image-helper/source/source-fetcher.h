/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A process that talks to the server of a source of manifests. It has access to nothing but the
 * network, and writes into the descriptor that comes with a request. Its output is untrusted. */

#include "agent/image-helper/registry/http-transport.h"
#include "agent/image-helper/source/source-settings.h"

enum {
        SOURCE_URL_SIZE = 2048,
        SOURCE_MESSAGE_SIZE = 1024
};

typedef struct SourceFetcher {
        int fd; /* for requests and replies; negative: none was started */
        pid_t pid;
        void (*on_tick)(void *userdata); /* twice a second while bytes arrive; NULL: not called */
        void *userdata;
} SourceFetcher;

typedef struct SourceRequest {
        char url[SOURCE_URL_SIZE];
        char etag[TRANSPORT_ETAG_SIZE]; /* "": any response of the server is wanted */
        uint64_t from;                  /* bytes that the descriptor has already */
        uint64_t size_max;
        uint64_t timeout_sec; /* 0: as long as bytes arrive */
} SourceRequest;

typedef struct SourceReply {
        int r;                /* 0, or -errno with 'message' */
        bool is_unchanged;    /* the server has the content of the ETag */
        bool was_interrupted; /* a part has arrived: another request may get the rest */
        uint64_t received;    /* bytes that were written to the descriptor */
        unsigned n_requests;  /* with those that redirects led to */
        char etag[TRANSPORT_ETAG_SIZE];
        char message[SOURCE_MESSAGE_SIZE];
} SourceReply;

/* Starts it, before privileges are dropped. 'close_in_fetcher' lists descriptors that it must not
 * have; a negative number ends the list. */
int source_fetcher_start(const SourceSettings *settings, const int *close_in_fetcher,
                         SourceFetcher *ret, Error *reterr);

/* Makes a request and waits for its end; bytes are written to 'fd' from 'request->from' on. 0 or
 * -errno, as 'ret->r'. */
int source_fetcher_get(SourceFetcher *fetcher, const SourceRequest *request, int fd,
                       SourceReply *ret, Error *reterr);

/* Copies the authorities of a file, if there is one, for a process that cannot read it: a memory
 * file in '*ret_fd', which is otherwise unchanged. 0 or -errno with the path. */
int copy_authorities(const char *path, int *ret_fd, Error *reterr);

/* It ends with the socket. */
void source_fetcher_done(SourceFetcher *fetcher);
