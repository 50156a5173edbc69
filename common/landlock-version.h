/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Version 2 is the first one that permits links between directories, which the image store creates,
 * so with version 1 nothing is restricted. */
#define LANDLOCK_VERSION_MIN 2

/* The version of the kernel's Landlock ABI that is available to this process. 0: none. */
int landlock_version(void);
