/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A socket that is connected to the one at a path. 'type' is that of socket(2), with its flags;
 * close-on-exec is added. A descriptor; -ENAMETOOLONG; another -errno. */
int unix_connect(const char *path, int type);
