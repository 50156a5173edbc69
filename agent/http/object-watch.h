/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The watch for kinds with few objects. Nothing is queued: when everything has been sent and
 * something may have changed, the watch compares the objects with those that it sent last. */

#include "agent/http/handlers.h"
#include "agent/http/http-server.h"

/* Calls 'each' for every object, always in the same order, with a key and its compact JSON. 0, a
 * negative value that 'each' returned, or -ENOMEM. */
typedef int (*http_objects_t)(HttpServer *server, http_each_object_t each, void *context);

enum MHD_Result reply_object_watch(HttpServer *server, struct MHD_Connection *http,
                                   HttpObjects kind, http_objects_t each);
