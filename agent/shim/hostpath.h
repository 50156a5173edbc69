/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* hostPath volumes, with the checks and messages of Kubernetes. The object that was checked is the
 * one that is mounted: its path is not looked up a second time. */

#include "common/error.h"

/* Opens (O_PATH) a hostPath volume of a Kubernetes type: "", "DirectoryOrCreate", "Directory",
 * "FileOrCreate", "File", "Socket", "CharDevice", "BlockDevice". A missing path of type "" is
 * created as a directory, like containerd does. A descriptor or -errno. */
int hostpath_open_checked(const char *path, const char *type, Error *reterr);
