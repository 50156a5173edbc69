/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The reason of a terminated container. */

#include <stdbool.h>

/* OOMKilled, Completed or Error, as in the kubelet. A container that exits with 0 is Completed
 * even if the kernel killed one of its processes. */
const char *container_exit_reason(int exit_code, bool oom_killed);
