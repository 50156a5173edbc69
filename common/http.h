/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Requests over HTTP, from an sd-event loop that never waits: libcurl's multi interface, whose
 * sockets and timer are event sources. Each request has a connection of its own, knows no proxy and
 * does not care who signed a server's certificate: it is how a probe asks a container. */

#include "common/error.h"

#include <stdint.h>
#include <systemd/sd-event.h>

typedef struct Http Http;
typedef struct HttpRequest HttpRequest;

typedef struct HttpSpec {
        const char *url;
        const char *const *headers; /* "Name: value", or "Name;" for an empty one; may be NULL */
        const char *body;           /* a POST where it is not NULL */
        size_t body_length;
        size_t response_max; /* bytes; what is longer is cut, and not waited for */
        bool is_connection;  /* to connect is all; the response is empty */
        bool is_http2;       /* without asking first whether the server speaks it */
} HttpSpec;

typedef struct HttpResponse {
        long status;
        const void *body;
        size_t body_length;
        const char *location;    /* where a redirection leads, absolute, or NULL */
        const char *grpc_status; /* of the header or the trailer, or NULL */
        const char *grpc_message;
} HttpResponse;

/* Called once, from the loop; the request is gone after. 'response' is NULL where there is none,
 * and 'error' then says why. */
typedef void (*http_done_t)(const HttpResponse *response, const char *error, void *userdata);

/* Loads libcurl. 0 or -errno and why. */
int http_new(sd_event *event, Http **ret, Error *reterr);

/* Freed after all its requests are done or cancelled. */
Http *http_free(Http *http);
DEFINE_CLEANUP(Http *, http_free)

/* Begins; what is pointed to need not outlive the call. 0 or -errno. */
int http_begin(Http *http, const HttpSpec *spec, http_done_t done, void *userdata,
               HttpRequest **ret, Error *reterr);

/* Ends it without calling back. NULL is fine. */
HttpRequest *http_cancel(HttpRequest *request);

/* True where both URLs have the same host. */
bool http_same_host(const char *url, const char *other);
