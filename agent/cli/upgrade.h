/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A connection to the agent that becomes a WebSocket. */

#include "common/error.h"

/* Asks for the path and, if the agent agrees, gives the socket, with nothing read beyond the
 * answer. 0; -EREMOTEIO with the agent's sentence where it refuses; another -errno with a sentence.
 */
int upgrade_connect(const char *socket, const char *path, int *ret, Error *reterr);
