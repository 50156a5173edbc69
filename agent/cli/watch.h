/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A watch: objects as they come, one a line, for as long as the agent lives. */

#include "common/error.h"

#include <jansson.h>

/* "ADDED", "MODIFIED", "DELETED"; the object is borrowed. -errno ends the watch. */
typedef int (*watch_object_t)(const char *type, json_t *object, void *userdata);

/* Gives what comes. Ends with -errno and a sentence; -EIO where the agent has ended. */
int watch_objects(const char *socket, const char *path, watch_object_t on_object, void *userdata,
                  Error *reterr);
