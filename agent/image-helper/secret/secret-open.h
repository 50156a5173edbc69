/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Decrypts values of Secrets for the agent, in a process that can neither open a file nor reach the
 * network: identities and values come on standard input, and the results go to standard output. */

#include "common/error.h"

/* Reads {"identities": […], "values": [{"name": …, "data": …}]}, in base64. Writes, for each value,
 * the number of its bytes, a newline and the bytes; nothing if one of them cannot be opened: then
 * the message names it. 0 or -errno. */
int decrypt_secret(int from, int to, Error *reterr);
