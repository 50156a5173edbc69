/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The second version is the first that permits links between directories, which the image store
 * makes: below it nothing is restricted. */
#define LANDLOCK_VERSION_MIN 2

/* The version of Landlock's interface that the kernel has and permits to this process. 0: none. */
int landlock_version(void);
