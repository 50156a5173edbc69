/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The handler of /debug/dump (HttpServerHandlers): the dump of all modules. */

char *agent_dump(void *userdata);
