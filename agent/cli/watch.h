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
