/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* There is a shim and a copier for each pod, which share the pages that neither of them writes. */

#include <sys/types.h>

/* fork(2) without the bookkeeping of the C library, which writes pages. For a process with one
 * thread. */
pid_t process_fork(void);
