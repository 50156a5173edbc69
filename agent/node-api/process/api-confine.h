/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Removes all privileges that this program does not need, before the first client is accepted,
 * because client data is parsed in this process and nowhere else. */

#include "common/error.h"

/* If started as root, becomes 'user'; drops all capabilities and can gain none; disables core
 * dumps, which would contain keys. 0 or -errno with a message. */
int confine_api_process(const char *user, Error *reterr);

/* From now on only listed system calls succeed: none opens a file, starts a program or creates a
 * socket except to the agent. 0 or -errno with a message. */
int confine_api_system_calls(Error *reterr);

/* The same two functions for the signer, which becomes nobody if its user does not exist, and whose
 * list is shorter. */
int confine_signer_process(const char *user, Error *reterr);
int confine_signer_calls(Error *reterr);
