/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* One HTTP request on an easy handle of libcurl: the options that all requests share, the limit of
 * the header, and the reason for a failed transfer. Redirects are not followed; proxies in the
 * environment are ignored. The owner of a request sets all other options on the handle. */

#include "common/curl-library.h"

/* PEM files as descriptors; negative: no certificate or key, or the system's authorities. */
typedef struct CurlTls {
        int authority_fd, certificate_fd, key_fd;
        bool is_unverified;
} CurlTls;

typedef struct CurlTransferSpec {
        const char *url;
        const char *protocols;   /* "http,https" */
        const char *unix_socket; /* the address to connect to, regardless of the host in the URL; or
                                  * NULL */
        const char *method;      /* NULL: GET, or POST if there is a body */
        const char *user_agent;  /* or NULL */
        const char *proxy;       /* NULL: none */
        const char *no_proxy;    /* hosts for which the proxy is not used; NULL: none */
        const char *body;        /* copied; NULL: none */
        size_t body_length;
        CurlTls tls;
        long http_version;         /* CURL_HTTP_VERSION_… */
        long connect_timeout_msec; /* 0: libcurl's own */
        long buffer_size;          /* 0: libcurl's own */
        size_t header_max;         /* maximum bytes of header and trailer */

        /* Called with each line of the header and the trailer, including the line break, and each
         * piece of the body; neither is NUL-terminated. A result < 0 ends the transfer. */
        int (*on_header)(const char *line, size_t length, void *userdata); /* may be NULL */
        int (*on_data)(const char *data, size_t length, void *userdata);
        void *userdata;
} CurlTransferSpec;

typedef struct CurlTransfer {
        CURL *easy; /* borrowed */
        struct curl_slist *headers;
        int (*on_header)(const char *line, size_t length, void *userdata);
        int (*on_data)(const char *data, size_t length, void *userdata);
        void *userdata;
        size_t header_length, header_max;
        int result; /* from the callback that ended it; -EMSGSIZE: the header was too long */
        char error[CURL_ERROR_SIZE];
} CurlTransfer;

/* Sets the options of an easy handle that is new or reset; it must be performed while the transfer
 * exists. curl_library() must have loaded libcurl. 0 or -ENOMEM; must be followed by
 * curl_transfer_done() in any case. */
int curl_transfer_init(CurlTransfer *transfer, CURL *easy, const CurlTransferSpec *spec);

/* Erases and frees the headers, after the handle has been reset or freed. */
void curl_transfer_done(CurlTransfer *transfer);

/* "Name: value"; "Name;" for an empty value; "Name:" to suppress a header that libcurl would send.
 * 0; -EINVAL for more than one line, which libcurl would send unchanged; -ENOMEM. */
int curl_transfer_add_header(CurlTransfer *transfer, const char *line);

/* TLS 1.2 or later. The descriptors of 'tls' must stay open until the transfer has ended. */
void curl_transfer_set_tls(const CurlTransfer *transfer, const CurlTls *tls);

/* The HTTP status; 0: there is no response yet. */
long curl_transfer_status(const CurlTransfer *transfer);

/* The reason for the failure, without details that differ between two equal failures. Valid as long
 * as the transfer exists. */
const char *curl_transfer_explain(CurlTransfer *transfer, CURLcode code);

/* Whether the server's certificate is not valid yet, or has expired, by this machine's clock. */
bool curl_transfer_failed_for_time(const CurlTransfer *transfer, CURLcode code);
