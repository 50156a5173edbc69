/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Drops everything that a child of the shim does not need, for the log copier and for the first
 * process of a shared PID namespace. */

#include <stddef.h>
#include <sys/types.h>

/* Closes all descriptors but 'kept' (which is sorted; negative ones are ignored) and 0 to 2, which
 * become /dev/null: standard input is that already. 0 or -errno. */
int confine_descriptors(int *kept, size_t n);

/* For a child of 'parent', with which it dies from now on: a separate user ("mainstay-log", or
 * nobody) without capabilities, little memory, and only system calls that act on descriptors that
 * it has. 0 or -errno: it must exit. */
int confine_streams(pid_t parent);
