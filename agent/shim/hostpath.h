/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* hostPath volumes, with the checks and messages of Kubernetes. The checked object itself is
 * mounted: its path is not resolved a second time. */

#include "common/error.h"

/* Opens (O_PATH) a hostPath volume of a Kubernetes type: "", "DirectoryOrCreate", "Directory",
 * "FileOrCreate", "File", "Socket", "CharDevice", "BlockDevice". A missing path of type "" is
 * created as a directory, as in containerd. A descriptor or -errno. */
int hostpath_open_checked(const char *path, const char *type, Error *reterr);
