/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* libcurl's multi interface on an sd-event loop: its sockets and its timer are event sources.
 * libcurl must not be called from its own callbacks; curl_loop_is_busy() reports whether one is
 * running, and 'on_settle' is called as soon as libcurl has returned. */

#include "common/curl-library.h"

#include <stdint.h>
#include <systemd/sd-event.h>

typedef struct CurlLoop CurlLoop;

typedef struct CurlLoopSpec {
        sd_event *event;
        const char *description; /* of the sources; static */
        int64_t priority;        /* of the sources */
        /* A transfer has completed; the callback removes it, and may start, end and free
         * transfers. */
        void (*on_done)(CURL *easy, CURLcode code, void *userdata);
        void (*on_settle)(void *userdata); /* NULL: not called. May free the loop. */
        void *userdata;
} CurlLoopSpec;

/* Loads libcurl. 0, or -errno and the reason. */
int curl_loop_new(const CurlLoopSpec *spec, CurlLoop **ret, Error *reterr);

/* Limits the transfers that share an HTTP/2 connection, if the server permits as many. */
void curl_loop_set_streams(CurlLoop *loop, unsigned max);

/* Limits the connections to one host; further transfers wait. 0: no limit. */
void curl_loop_set_connections(CurlLoop *loop, unsigned max);

/* Limits the number of open connections: if there are more at the end of a transfer, the least
 * recently used one is closed. 0: libcurl's own limit, four per transfer. */
void curl_loop_set_open_connections(CurlLoop *loop, unsigned max);

/* To be called after all transfers have been removed. May be called from 'on_done'. */
CurlLoop *curl_loop_free(CurlLoop *loop);
DEFINE_CLEANUP(CurlLoop *, curl_loop_free)

/* Must not be called from libcurl's callbacks. 0 or -EIO. */
int curl_loop_add(CurlLoop *loop, CURL *easy);
void curl_loop_remove(CurlLoop *loop, CURL *easy);

/* To be called from the write callback of an HTTP/2 transfer, and after one was removed before its
 * end: libcurl may have buffered more data, which it then delivers in this turn of the loop or in
 * the next ones. */
void curl_loop_drain(CurlLoop *loop);

/* Whether a callback of libcurl or 'on_done' is running. */
bool curl_loop_is_busy(const CurlLoop *loop);
