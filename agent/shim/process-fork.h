/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Each pod has a shim and a copier, which share all pages that neither of them writes to. */

#include <sys/types.h>

/* fork(2) without the C library's bookkeeping, which writes to pages. Only for single-threaded
 * processes. */
pid_t process_fork(void);
