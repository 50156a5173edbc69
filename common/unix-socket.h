/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Returns a socket connected to the one at a path: a descriptor, -ENAMETOOLONG, or another -errno.
 * 'type' is the type for socket(2), with its flags; close-on-exec is added. */
int unix_connect(const char *path, int type);
