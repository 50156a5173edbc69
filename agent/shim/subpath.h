/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* subPaths, which must stay inside their volume. The object that was checked is the one that is
 * opened; no path is looked up a second time. */

#include "common/error.h"

#include <sys/types.h>

/* Opens (O_PATH) 'path', which starts with 'root', and follows only links that stay beneath 'root':
 * the keys of a ConfigMap are links within their volume. Missing directories are created with the
 * mode of the root, as the kubelet does for subPath; no link is followed among them. A descriptor
 * or -errno. */
int subpath_open(const char *path, const char *root, Error *reterr);
