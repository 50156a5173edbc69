/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Opens a WebSocket connection to the agent. */

#include "common/error.h"

/* Requests the path and, if the agent switches protocols, returns the socket, with nothing read
 * beyond the response header. 0; -EREMOTEIO with the agent's message if it refuses; another -errno
 * with a message. */
int upgrade_connect(const char *socket, const char *path, int *ret, Error *reterr);
