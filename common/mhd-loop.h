/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Runs libmicrohttpd without threads in an event loop: its epoll descriptor is an event source, and
 * it runs when the descriptor is readable, when it has more to do, or when it must end an idle
 * connection. There is no timer while no client is connected. */

#include <microhttpd.h>
#include <stdbool.h>
#include <systemd/sd-event.h>

typedef struct MhdLoop {
        struct MHD_Daemon *mhd; /* owned; NULL: not started */
        sd_event_source *readable;
        sd_event_source *deferred_run; /* libmicrohttpd or the server has more to do */
        sd_event_source *idle_timer;   /* only for a daemon with MHD_OPTION_CONNECTION_TIMEOUT */

        /* Set by the caller before the start, or 0: */
        int64_t priority;                        /* priority of its sources */
        void (*on_deferred_run)(void *userdata); /* called before a scheduled run */
        void *userdata;
} MhdLoop;

/* Takes a daemon that was started with MHD_USE_EPOLL; NULL: starting it failed. The caller ends it
 * with mhd_loop_stop(), even after an error. 0, -EIO for NULL, or another -errno. */
int mhd_loop_start(MhdLoop *loop, sd_event *event, struct MHD_Daemon *mhd_take);

/* Stops the daemon, whose connections must not be suspended or upgraded. */
void mhd_loop_stop(MhdLoop *loop);

/* Adds the socket of a client, and runs the daemon so that the connection has started when this
 * returns; libmicrohttpd 1.0 would only queue it until the daemon runs, and then close connections
 * beyond its limit without a response. Must not be called from the daemon's callbacks. False: the
 * descriptor was closed. */
bool mhd_loop_add_connection(MhdLoop *loop, int fd_consume, const struct sockaddr *address,
                             socklen_t size);

/* Runs the daemon now, or in the next turn of the loop. */
void mhd_loop_run(MhdLoop *loop);
void mhd_loop_schedule_run(MhdLoop *loop);

/* For MHD_OPTION_UNESCAPE_CALLBACK: a NUL sent as %00 becomes '?', because it would end the path
 * early, and a path other than the requested one would be compared. */
size_t mhd_unescape_path(void *userdata, struct MHD_Connection *http, char *text);
