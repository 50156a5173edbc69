/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Handlers of /debug/… (HttpServerHandlers): the dump of all modules, and the log level. */

#include "common/error.h"

char *agent_dump(void *userdata);
const char *agent_get_log_level(void *userdata);
int agent_set_log_level(void *userdata, const char *level, Error *reterr);
