/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* One HTTP request to its end: no redirect is followed, nothing is tried twice, no cookie, no
 * netrc, no environment variable counts. What the answer says is held to limits as it arrives. */

#include "agent/fetch/challenge.h"
#include "agent/fetch/endpoint.h"

#include <stdint.h>

typedef struct Http Http;

typedef struct HttpRequest {
        const char *url;
        const Endpoint *endpoint;    /* whose authorities, proxy and certificate count */
        bool is_own_host;            /* only there is a client certificate shown */
        bool was_redirected;         /* then not to an address that only means something here */
        const char *user, *password; /* Basic; or NULL */
        const char *bearer;          /* or NULL */
        const char *accept;          /* or NULL */
        const char *form;            /* a body to POST, or NULL for GET */
        uint64_t from;               /* bytes that are here already: asked for by Range … */
        bool without_range;          /* … or skipped, of a server that has no such thing */
        uint64_t body_max;           /* no more than this, counted from 0 */

        /* Called with the bytes of a good answer, and where they stand in the whole. 0 or -errno.
         */
        int (*on_data)(const void *data, size_t length, uint64_t position, void *userdata);
        void *userdata;
} HttpRequest;

enum {
        HTTP_TYPE_SIZE = 128,
        HTTP_WORDS_SIZE = 512
};

typedef struct HttpReply {
        long status; /* 0: there was no answer */
        char media_type[HTTP_TYPE_SIZE];
        Challenge challenge;
        char *location;
        uint64_t retry_after_sec;    /* UINT64_MAX: it did not say */
        uint64_t received;           /* bytes that on_data() was given */
        bool range_is_wrong;         /* 206 for something else than was asked */
        char words[HTTP_WORDS_SIZE]; /* what a refusal says, for a person */
} HttpReply;

/* What to make of a failure. */
typedef enum HttpFault {
        HTTP_FINE,
        HTTP_UNREACHABLE, /* no address, no connection */
        HTTP_INSECURE,    /* TLS says no */
        HTTP_BROKEN,      /* it broke off, or stalled: may go better another time */
        HTTP_WRONG,       /* an answer that is none, or too large */
        HTTP_OURS,        /* memory, disk */
} HttpFault;

int http_new(const Endpoints *proxies, Http **ret);
Http *http_free(Http *http);
DEFINE_CLEANUP(Http *, http_free)

/* 0 where there was an answer, whatever it is; or -errno with the sentence and the fault. */
int http_perform(Http *http, const HttpRequest *request, HttpReply *reply, HttpFault *ret_fault,
                 Error *reterr);

void http_reply_done(HttpReply *reply);

/* The URL that a Location means, seen from another; -EINVAL, -EPROTO where its scheme is neither
 * https nor, where 'may_be_plain', http. */
int http_resolve(const char *base, const char *location, bool may_be_plain, char **ret,
                 Error *reterr);

/* Whether two URLs agree in scheme, host and port. */
bool http_same_origin(const char *a, const char *b);

/* "host" of an URL, without its port. Memory that the caller frees, or NULL. */
char *http_host(const char *text);
