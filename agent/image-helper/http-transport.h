/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* One HTTP request to its end: no redirect is followed, nothing is tried twice, no cookie, no
 * netrc, no environment variable counts. What the answer says is held to limits as it arrives. */

#include "agent/image-helper/challenge.h"
#include "agent/image-helper/endpoint.h"

#include <stdint.h>

typedef struct HttpTransport HttpTransport;

typedef struct TransportRequest {
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
} TransportRequest;

enum {
        TRANSPORT_MEDIA_TYPE_SIZE = 128,
        TRANSPORT_ERROR_TEXT_SIZE = 512
};

typedef struct TransportResponse {
        long status; /* 0: there was no answer */
        char media_type[TRANSPORT_MEDIA_TYPE_SIZE];
        Challenge challenge;
        char *location;
        uint64_t retry_after_sec;                   /* UINT64_MAX: it did not say */
        uint64_t received;                          /* bytes that on_data() was given */
        bool range_is_wrong;                        /* 206 for something else than was asked */
        char error_text[TRANSPORT_ERROR_TEXT_SIZE]; /* what a refusal says, for a person */
} TransportResponse;

/* What to make of a failure. */
typedef enum TransportFault {
        TRANSPORT_OK,
        TRANSPORT_UNREACHABLE,  /* no address, no connection */
        TRANSPORT_TLS_FAILED,   /* TLS says no */
        TRANSPORT_INTERRUPTED,  /* it broke off, or stalled: may go better another time */
        TRANSPORT_BAD_RESPONSE, /* an answer that is none, or too large */
        TRANSPORT_LOCAL_ERROR,  /* memory, disk */
} TransportFault;

int http_transport_new(const Endpoints *proxies, HttpTransport **ret);
HttpTransport *http_transport_free(HttpTransport *http);
DEFINE_CLEANUP(HttpTransport *, http_transport_free)

/* 0 where there was an answer, whatever it is; or -errno with the sentence and the fault. */
int http_transport_perform(HttpTransport *http, const TransportRequest *request,
                           TransportResponse *reply, TransportFault *ret_fault, Error *reterr);

void transport_response_done(TransportResponse *reply);

/* The URL that a Location means, seen from another; -EINVAL, -EPROTO where its scheme is neither
 * https nor, where 'may_be_plain', http. */
int url_resolve_location(const char *base, const char *location, bool may_be_plain, char **ret,
                         Error *reterr);

/* Whether two URLs agree in scheme, host and port. */
bool url_same_origin(const char *a, const char *b);

/* "host" of an URL, without its port. Memory that the caller frees, or NULL. */
char *url_get_host(const char *text);
