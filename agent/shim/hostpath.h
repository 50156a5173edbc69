/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Sources of bind mounts: hostPath volumes with the checks and the sentences of Kubernetes, and
 * paths that must stay inside a volume. What was checked is what is opened; nothing is looked up a
 * second time. */

#include "common/error.h"

#include <sys/types.h>

/* Opens (O_PATH) a hostPath volume of a Kubernetes type: "", "DirectoryOrCreate", "Directory",
 * "FileOrCreate", "File", "Socket", "CharDevice", "BlockDevice". A missing path of type "" becomes
 * a directory, as containerd has it. A descriptor or -errno. */
int hostpath_open(const char *path, const char *type, Error *reterr);

/* Opens (O_PATH) 'path', which begins with 'root', following no link that leads out of it: the keys
 * of a ConfigMap are links within their volume. What is missing is made as directories with the
 * mode of the root, as the kubelet does for subPath, and on that way no link is followed at all. A
 * descriptor or -errno. */
int subpath_open(const char *path, const char *root, Error *reterr);

/* Makes the directories on the way to 'path' below 'dir_fd', and itself (a directory or an empty
 * file), where they are missing; follows no link. Opens it O_PATH. A descriptor or -errno. */
int make_path_at(int dir_fd, const char *path, bool directory, mode_t mode);
