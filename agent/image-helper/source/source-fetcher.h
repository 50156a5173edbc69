/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A process that communicates with the server of a manifest source. It can access nothing but the
 * network, and writes to the descriptor that comes with a request. Its output is untrusted. */

#include "agent/image-helper/registry/http-transport.h"
#include "agent/image-helper/source/source-settings.h"

enum {
        SOURCE_URL_SIZE = 2048,
        SOURCE_MESSAGE_SIZE = 1024
};

typedef struct SourceFetcher {
        int fd; /* for requests and replies; negative: not started */
        pid_t pid;
        void (*on_tick)(void *userdata); /* twice a second while data arrives; NULL: not called */
        void *userdata;
} SourceFetcher;

typedef struct SourceRequest {
        char url[SOURCE_URL_SIZE];
        char etag[TRANSPORT_ETAG_SIZE]; /* "": no ETag is known */
        uint64_t from;                  /* bytes that the descriptor already contains */
        uint64_t size_max;
        uint64_t timeout_sec; /* 0: as long as bytes arrive */
} SourceRequest;

typedef struct SourceReply {
        int r;                /* 0, or -errno with 'message' */
        bool is_unchanged;    /* the server's content has not changed since that ETag */
        bool was_interrupted; /* a part has arrived: another request may fetch the rest */
        uint64_t received;    /* bytes written to the descriptor */
        unsigned n_requests;  /* including those after redirects */
        char etag[TRANSPORT_ETAG_SIZE];
        char message[SOURCE_MESSAGE_SIZE];
} SourceReply;

/* Starts it; to be called before privileges are dropped. 'close_in_fetcher' lists descriptors that
 * it must not have, terminated by a negative number. */
int source_fetcher_start(const SourceSettings *settings, const int *close_in_fetcher,
                         SourceFetcher *ret, Error *reterr);

/* Makes a request and waits for its end; bytes are written to 'fd' from 'request->from' on. 0 or
 * -errno, as 'ret->r'. */
int source_fetcher_get(SourceFetcher *fetcher, const SourceRequest *request, int fd,
                       SourceReply *ret, Error *reterr);

/* Copies the file of certificate authorities, if there is one, to a memory file for a process that
 * cannot read the original. '*ret_fd' is the memory file, and is unchanged if there is none. 0 or
 * -errno with the path. */
int copy_authorities(const char *path, int *ret_fd, Error *reterr);

/* Closes the socket, which ends the process. */
void source_fetcher_done(SourceFetcher *fetcher);
