/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* One HTTP request: redirects are not followed, nothing is retried; cookies, netrc and environment
 * variables are ignored. Limits on the response are enforced as it arrives. */

#include "agent/image-helper/registry/challenge.h"
#include "agent/image-helper/registry/endpoint.h"

#include <stdint.h>
#include <time.h>

typedef struct HttpTransport HttpTransport;

typedef struct TransportRequest {
        const char *url;
        const Endpoint *endpoint;    /* provides authorities, proxy and certificate */
        bool is_own_host;            /* the client certificate is only sent to the endpoint's own
                                      * host */
        bool was_redirected;         /* after a redirect, link-local addresses are not contacted */
        const char *user, *password; /* for Basic authentication; or NULL */
        const char *bearer;          /* or NULL */
        const char *accept;          /* or NULL */
        const char *const *headers;  /* additional ones, "Name: value"; or NULL */
        const char *etag;            /* a body with this ETag is not needed again; or NULL */
        uint64_t rate_max;           /* bytes per second; 0: no limit */
        uint64_t timeout_sec;        /* for the whole transfer; 0: as long as data arrives */
        const char *form;            /* a body for POST, or NULL for GET */
        uint64_t from;               /* bytes that are already present: excluded with Range … */
        bool without_range;          /* … or skipped, if the server does not support that */
        uint64_t body_max;           /* limit, counted from the start of the object */

        /* Called with the bytes of a successful response and their position in the object. 0 or
         * -errno. */
        int (*on_data)(const void *data, size_t length, uint64_t position, void *userdata);
        void *userdata;
} TransportRequest;

enum {
        TRANSPORT_MEDIA_TYPE_SIZE = 128,
        TRANSPORT_ETAG_SIZE = 256,
        TRANSPORT_ERROR_TEXT_SIZE = 512
};

typedef struct TransportResponse {
        long status; /* 0: there was no response */
        char media_type[TRANSPORT_MEDIA_TYPE_SIZE];
        char etag[TRANSPORT_ETAG_SIZE]; /* "": none, or too long */
        int64_t date, last_modified;    /* 0: unknown */
        bool has_end;                   /* its length or its last chunk shows whether it is
                                         * complete */
        Challenge challenge;
        char *location;
        uint64_t retry_after_sec;                   /* UINT64_MAX: not specified */
        uint64_t received;                          /* bytes passed to on_data() */
        bool range_is_wrong;                        /* 206 for a range that was not requested */
        char error_text[TRANSPORT_ERROR_TEXT_SIZE]; /* start of an error response, for messages */
} TransportResponse;

/* How a failure is treated. */
typedef enum TransportFault {
        TRANSPORT_OK,
        TRANSPORT_UNREACHABLE,  /* no address, or no connection */
        TRANSPORT_TLS_FAILED,   /* the handshake failed */
        TRANSPORT_UNTRUSTED,    /* the certificate was not issued by a trusted authority */
        TRANSPORT_NOT_IN_TIME,  /* the certificate is not valid yet, or has expired */
        TRANSPORT_INTERRUPTED,  /* closed or stalled: a retry may succeed */
        TRANSPORT_NOT_HTTP,     /* the server speaks another protocol */
        TRANSPORT_BAD_RESPONSE, /* not a valid response, or too large */
        TRANSPORT_LOCAL_ERROR,  /* memory, disk */
} TransportFault;

int http_transport_new(const Endpoints *proxies, HttpTransport **ret);
HttpTransport *http_transport_free(HttpTransport *http);
DEFINE_CLEANUP(HttpTransport *, http_transport_free)

/* 0 for any response; or -errno with a message and the fault. */
int http_transport_perform(HttpTransport *http, const TransportRequest *request,
                           TransportResponse *reply, TransportFault *ret_fault, Error *reterr);

void transport_response_done(TransportResponse *reply);

/* The URL in a Location header, resolved against the URL of the request; -EINVAL, -EPROTO if its
 * scheme is neither https nor, if 'may_be_plain', http. */
int url_resolve_location(const char *base, const char *location, bool may_be_plain, char **ret,
                         Error *reterr);

/* The same, if the endpoint permits it: an endpoint on a loopback address may redirect to plain
 * HTTP only on loopback addresses. */
int url_resolve_for_endpoint(const Endpoint *endpoint, const char *base, const char *location,
                             char **ret, Error *reterr);

/* Whether two URLs have the same scheme, host and port. */
bool url_same_origin(const char *a, const char *b);

/* The host of a URL, without its port. The caller frees it; NULL: none, or out of memory. */
char *url_get_host(const char *text);
