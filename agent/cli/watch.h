/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A watch: objects as they change, one line of JSON for each, until the agent ends. */

#include "common/error.h"

#include <jansson.h>

/* "ADDED", "MODIFIED", "DELETED"; the object is borrowed. "BOOKMARK", with NULL, once all existing
 * objects have been added, if the path has "bookmark=1". -errno ends the watch, and so does 1,
 * which indicates success. */
typedef int (*watch_object_t)(const char *type, json_t *object, void *userdata);

/* Runs the watch. 0 if the callback ended it, else -errno with a message; -EIO if the agent has
 * exited. */
int watch_objects(const char *socket, const char *path, watch_object_t on_object, void *userdata,
                  Error *reterr);

/* The same, but only for the pods of an earlier list, identified by their UIDs, and without
 * "BOOKMARK". The end of each pod is reported: a pod that was removed between the list and the
 * watch is "DELETED" in the state that it had in the list. The list is borrowed during the call. */
int watch_pods(const char *socket, const json_t *pods, watch_object_t on_pod, void *userdata,
               Error *reterr);
