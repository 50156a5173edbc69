/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* subPaths, which must stay inside their volume. The checked object itself is opened; no path is
 * resolved a second time. */

#include "common/error.h"

#include <sys/types.h>

/* Opens (O_PATH) 'path', which starts with 'root', and follows only links that stay below 'root':
 * the keys of a ConfigMap are links within their volume. Missing directories are created with the
 * mode of the root, as in the kubelet for subPath; no links are followed while they are created.
 * A descriptor or -errno. */
int subpath_open(const char *path, const char *root, Error *reterr);
