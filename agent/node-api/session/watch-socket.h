/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A client's watch over a WebSocket: each event is a text message. Messages from the client are
 * ignored, as in an API server. */

#include "agent/node-api/http/stream-socket.h"

typedef struct WatchSocket WatchSocket;

/* The source of the events. 'free' frees 'userdata'. */
typedef struct WatchEvents {
        /* The next events, one per line, which the caller frees. 1; 0: none for now, and
         * watch_socket_update() follows; -errno: the watch has ended. */
        int (*take)(void *userdata, char **ret_text, size_t *ret_length);
        void (*set_socket)(void *userdata, WatchSocket *socket); /* called before the first
                                                                  * take() */
        void (*free)(void *userdata);
        void *userdata;
} WatchEvents;

typedef struct WatchSocketSpec {
        sd_event *event;
        WatchEvents events; /* owned by the WatchSocket, even if that cannot be created */
        ClientStream client;
        void (*on_over)(void *userdata); /* called once, from the loop; frees it */
        void *userdata;
} WatchSocketSpec;

/* 0 or -errno. */
int watch_socket_new(const WatchSocketSpec *spec, WatchSocket **ret);

/* Without on_over(). */
WatchSocket *watch_socket_free(WatchSocket *watch);
DEFINE_CLEANUP(WatchSocket *, watch_socket_free)

/* More events may be available. */
void watch_socket_update(WatchSocket *watch);
