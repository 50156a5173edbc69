/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Requests over HTTP, from an sd-event loop that never waits: libcurl's multi interface, whose
 * sockets and timer are event sources. Each request has a connection of its own, knows no proxy and
 * does not care who signed a server's certificate: it is how a probe asks a container. */

#include "common/error.h"

#include <stdint.h>
#include <systemd/sd-event.h>

typedef struct HttpClient HttpClient;
typedef struct HttpClientRequest HttpClientRequest;

typedef struct HttpClientSpec {
        const char *url;
        const char *const *headers; /* "Name: value", or "Name;" for an empty one; may be NULL */
        const char *body;           /* a POST where it is not NULL */
        size_t body_length;
        size_t response_max; /* bytes; what is longer is cut, and not waited for */
        bool is_connection;  /* to connect is all; the response is empty */
        bool is_http2;       /* without asking first whether the server speaks it */
} HttpClientSpec;

typedef struct HttpClientResponse {
        long status;
        const void *body;
        size_t body_length;
        const char *location;    /* where a redirection leads, absolute, or NULL */
        const char *grpc_status; /* of the header or the trailer, or NULL */
        const char *grpc_message;
} HttpClientResponse;

/* Called once, from the loop; the request is gone after. 'response' is NULL where there is none,
 * and 'error' then says why. */
typedef void (*http_client_done_t)(const HttpClientResponse *response, const char *error,
                                   void *userdata);

/* Loads libcurl. 0 or -errno and why. */
int http_client_new(sd_event *event, HttpClient **ret, Error *reterr);

/* Freed after all its requests are done or cancelled. */
HttpClient *http_client_free(HttpClient *http);
DEFINE_CLEANUP(HttpClient *, http_client_free)

/* Begins; what is pointed to need not outlive the call. 0 or -errno. */
int http_client_start(HttpClient *http, const HttpClientSpec *spec, http_client_done_t done,
                      void *userdata, HttpClientRequest **ret, Error *reterr);

/* Ends it without calling back. NULL is fine. */
HttpClientRequest *http_client_cancel(HttpClientRequest *request);

/* True where both URLs have the same host. */
bool http_client_same_host(const char *url, const char *other);
