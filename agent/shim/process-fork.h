/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* There are a shim and a copier for each pod, which share the pages that neither of them writes
 * to. */

#include <sys/types.h>

/* fork(2) without the C library's bookkeeping, which writes to pages. Only for single-threaded
 * processes. */
pid_t process_fork(void);
