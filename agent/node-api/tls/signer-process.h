/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* mainstay-api --signer, which mainstayd starts: a process with its own user that has only the
 * files and sockets that it receives. It exits when mainstayd does, or after it has not been used
 * for a while. */

#include "common/error.h"

/* Standard input is connected to the agent. 0, or -errno with a message. */
int run_signer_process(const char *user, Error *reterr);
