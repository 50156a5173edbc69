/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A watch: objects as they change, one JSON line each, until the agent ends. */

#include "common/error.h"

#include <jansson.h>

/* "ADDED", "MODIFIED", "DELETED"; the object is borrowed. "BOOKMARK", with NULL, once all existing
 * objects have been added, if the path has "bookmark=1". -errno ends the watch, and so does 1,
 * which means success. */
typedef int (*watch_object_t)(const char *type, json_t *object, void *userdata);

/* Runs the watch. 0 if the callback ended it, else -errno with a message; -EIO if the agent has
 * exited. */
int watch_objects(const char *socket, const char *path, watch_object_t on_object, void *userdata,
                  Error *reterr);

/* The same for these pods of an earlier list only, identified by their UIDs, without "BOOKMARK".
 * The end of each is reported: a pod that has gone between the list and the watch is "DELETED" as
 * it was in the list. The list is borrowed for the call. */
int watch_pods(const char *socket, const json_t *pods, watch_object_t on_pod, void *userdata,
               Error *reterr);
