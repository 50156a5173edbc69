/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Decrypts values of Secrets, as agent/secrets/opening-protocol.h describes. */

#include "common/buffer.h"

/* Answers the request, and overwrites the request because it contains identities. The answer, which
 * the caller erases, has an entry for each value. 0; -EBADMSG: the request is not complete;
 * -ENOMEM. */
int open_values(void *request, size_t length, Buffer *ret);
