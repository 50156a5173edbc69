/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Runs libmicrohttpd without threads in an event loop: its epoll descriptor is a source, and it
 * runs when that is readable, when it has more to do, or when it must end a connection that is
 * idle. There is no timer while no client is connected. */

#include <microhttpd.h>
#include <stdbool.h>
#include <systemd/sd-event.h>

typedef struct MhdLoop {
        struct MHD_Daemon *mhd; /* owned; NULL: not started */
        sd_event_source *readable;
        sd_event_source *deferred_run; /* libmicrohttpd or the server has more to do */
        sd_event_source *idle_timer;   /* only of a daemon with MHD_OPTION_CONNECTION_TIMEOUT */

        /* Set by the caller before the start, or 0: */
        int64_t priority;                        /* of its sources */
        void (*on_deferred_run)(void *userdata); /* before a scheduled run */
        void *userdata;
} MhdLoop;

/* Takes a daemon that was started with MHD_USE_EPOLL; NULL: it could not be started. The caller
 * ends it with mhd_loop_stop(), also after an error. 0, -EIO for NULL, or another -errno. */
int mhd_loop_start(MhdLoop *loop, sd_event *event, struct MHD_Daemon *mhd_take);

/* Stops the daemon, whose connections must not be suspended or upgraded. */
void mhd_loop_stop(MhdLoop *loop);

/* Adds the socket of a client, which has started when this returns: a daemon of libmicrohttpd 1.0
 * only queues it until it runs, and closes what exceeds its limit by then without a response. Not
 * to be called by the daemon's callbacks. False: the descriptor was closed. */
bool mhd_loop_add_connection(MhdLoop *loop, int fd_consume, const struct sockaddr *address,
                             socklen_t size);

/* Now, and in the next turn of the loop. */
void mhd_loop_run(MhdLoop *loop);
void mhd_loop_schedule_run(MhdLoop *loop);

/* For MHD_OPTION_UNESCAPE_CALLBACK: a NUL that was sent as %00 becomes '?', as it would end the
 * path early, and a path other than the requested one would be compared. */
size_t mhd_unescape_path(void *userdata, struct MHD_Connection *http, char *text);
