/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* libcurl's multi interface on an sd-event loop: its sockets and its timer are event sources. While
 * libcurl is at work nothing may be asked of it, which curl_loop_is_busy() tells; 'on_settle' is
 * called as soon as it is not any more. */

#include "common/curl-library.h"

#include <stdint.h>
#include <systemd/sd-event.h>

typedef struct CurlLoop CurlLoop;

typedef struct CurlLoopSpec {
        sd_event *event;
        const char *description; /* of the sources; static */
        int64_t priority;        /* of the sources */
        /* A transfer has ended; whoever hears it removes it, and may begin, end and free. */
        void (*on_done)(CURL *easy, CURLcode code, void *userdata);
        void (*on_settle)(void *userdata); /* NULL: of no interest. It may free the loop. */
        void *userdata;
} CurlLoopSpec;

/* Loads libcurl. 0 or -errno and why. */
int curl_loop_new(const CurlLoopSpec *spec, CurlLoop **ret, Error *reterr);

/* How many transfers may share a connection of HTTP/2, if the server allows as many. */
void curl_loop_set_streams(CurlLoop *loop, unsigned max);

/* To one host; what does not fit waits. 0: any number. */
void curl_loop_set_connections(CurlLoop *loop, unsigned max);

/* After all transfers are removed. May be called from 'on_done'. */
CurlLoop *curl_loop_free(CurlLoop *loop);
DEFINE_CLEANUP(CurlLoop *, curl_loop_free)

/* Not from within libcurl's callbacks. 0 or -EIO. */
int curl_loop_add(CurlLoop *loop, CURL *easy);
void curl_loop_remove(CurlLoop *loop, CURL *easy);

/* Within libcurl's callbacks or 'on_done'. */
bool curl_loop_is_busy(const CurlLoop *loop);
