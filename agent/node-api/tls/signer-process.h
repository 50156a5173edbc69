/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* mainstay-api --signer, which mainstayd starts: a process with its own user, with only the files
 * and sockets that it is given. It ends with mainstayd, or when nobody has used it for a
 * while. */

#include "common/error.h"

/* Standard input is the agent. 0, or -errno with a message. */
int run_signer_process(const char *user, Error *reterr);
