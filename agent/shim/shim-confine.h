/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Drops everything that a child of the shim does not need, for the log copier and for the first
 * process of a shared PID namespace. */

#include <stddef.h>
#include <sys/types.h>

/* Closes all descriptors except 'kept' (sorted; negative ones are ignored) and 0 to 2, which all
 * become /dev/null, as standard input already is. 0 or -errno. */
int confine_descriptors(int *kept, size_t n);

/* For a child of 'parent', which from now on dies with its parent: gives it a separate user
 * ("mainstay-log", or nobody) without capabilities, little memory, and only system calls on
 * descriptors that it already has. 0; or -errno, in which case it must exit. */
int confine_streams(pid_t parent);
