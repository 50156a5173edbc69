/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Which system calls the kernel must have. */

#include "common/error.h"

/* 0, or -ENOSYS with a message that names the call that the kernel lacks, or that a filter hides
 * from us and from what we start. */
int kernel_check_calls(Error *reterr);
