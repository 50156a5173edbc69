/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include <sys/types.h>

/* Starts a program that is looked up in PATH, with these standard streams; its standard error is
 * inherited. 0 or -errno. */
int spawn_with_streams(char *const *argv, int input, int output, pid_t *ret);
