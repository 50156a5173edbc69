/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Which system calls the kernel must have. */

#include "common/error.h"

/* 0, or -ENOSYS with a message that names the call that the kernel does not have, or that a filter
 * hides from us and from the programs that we start. */
int kernel_check_calls(Error *reterr);
