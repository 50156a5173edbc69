/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A watch: objects as they come, one a line, for as long as the agent lives. */

#include "common/error.h"

#include <jansson.h>

/* "ADDED", "MODIFIED", "DELETED"; the object is borrowed. -errno ends the watch, and so does 1, for
 * the reader has seen enough. */
typedef int (*watch_object_t)(const char *type, json_t *object, void *userdata);

/* Gives what comes. 0 where the reader has seen enough, else -errno with a sentence; -EIO where the
 * agent has ended. */
int watch_objects(const char *socket, const char *path, watch_object_t on_object, void *userdata,
                  Error *reterr);
