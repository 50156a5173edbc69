/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* One client of the HTTP server. It has a time limit for sending a request and for reading each
 * part of the response, unless the response is a stream without end. */

#include "common/macros.h"

#include <microhttpd.h>
#include <stdint.h>
#include <systemd/sd-event.h>

enum {
        /* The priority of the event sources of the servers. Pods come first: no number of requests
         * delays the start of a pod, or the restart of a container. */
        HTTP_PRIORITY = SD_EVENT_PRIORITY_NORMAL + 20,
};

typedef struct HttpConnection HttpConnection;
typedef struct HttpAccess HttpAccess;

/* NULL: out of memory. 'fd' belongs to libmicrohttpd. */
HttpConnection *http_connection_new(sd_event *event, int fd, uint64_t timeout_usec);
HttpConnection *http_connection_free(HttpConnection *connection);

/* The connection of a request; NULL: out of memory. */
HttpConnection *http_connection_of(struct MHD_Connection *http);

int http_connection_fd(const HttpConnection *connection);

/* Restarts the time limit, or disables it. */
void http_connection_set_deadline(HttpConnection *connection);
void http_connection_clear_deadline(HttpConnection *connection);

/* Sets the protocol to which the connection is upgraded (exec), until the upgrade takes it. It is
 * freed with the connection if the client disconnects first. */
void http_connection_set_upgrade_take(HttpConnection *connection, void *upgrade,
                                      void (*free_upgrade)(void *upgrade));
void *http_connection_take_upgrade(HttpConnection *connection);

/* The state of the client's access check, for one request: see serve-access.h. The connection owns
 * it. */
HttpAccess *http_connection_access(const HttpConnection *connection);
void http_connection_set_access_take(HttpConnection *connection, HttpAccess *access,
                                     void (*free_access)(HttpAccess *access));
