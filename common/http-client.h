/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* HTTP requests from an sd-event loop: libcurl's multi interface, whose sockets and timer are event
 * sources. For probes and hooks of containers: each request has a separate connection, uses no
 * proxy and does not verify the server's certificate. */

#include "common/error.h"

#include <stdint.h>
#include <systemd/sd-event.h>

typedef struct HttpClient HttpClient;
typedef struct HttpClientRequest HttpClientRequest;

typedef struct HttpClientSpec {
        const char *url;
        const char *const *headers; /* "Name: value", or "Name;" for an empty value; may be NULL */
        const char *body;           /* unless NULL, the request is a POST */
        size_t body_length;
        size_t response_max; /* in bytes; a longer body is truncated, without waiting for the rest
                              */
        bool is_connection;  /* only connect; the response is empty */
        bool is_http2;       /* HTTP/2 without negotiation */
} HttpClientSpec;

typedef struct HttpClientResponse {
        long status;
        const void *body;
        size_t body_length;
        const char *location;    /* absolute URL of a redirect, or NULL */
        const char *grpc_status; /* from the header or the trailer, or NULL */
        const char *grpc_message;
} HttpClientResponse;

/* Called once, from the loop; the request is freed afterwards. 'response' is NULL if there is none;
 * then 'error' contains the reason. */
typedef void (*http_client_done_t)(const HttpClientResponse *response, const char *error,
                                   void *userdata);

/* Loads libcurl. 0, or -errno and the reason. */
int http_client_new(sd_event *event, HttpClient **ret, Error *reterr);

/* To be freed after all of its requests are done or cancelled. */
HttpClient *http_client_free(HttpClient *http);
DEFINE_CLEANUP(HttpClient *, http_client_free)

/* Starts a request; the arguments need not outlive the call. 0 or -errno. */
int http_client_start(HttpClient *http, const HttpClientSpec *spec, http_client_done_t done,
                      void *userdata, HttpClientRequest **ret, Error *reterr);

/* Cancels a request without a callback. NULL is allowed. */
HttpClientRequest *http_client_cancel(HttpClientRequest *request);

/* True if both URLs have the same host. */
bool http_client_same_host(const char *url, const char *other);
