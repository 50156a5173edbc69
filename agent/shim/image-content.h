/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The volumes that an image declares: directories that get a copy of the image's content at their
 * path. Blocks during the copy, so it is for tasks, not for the loop. */

#include "common/error.h"

/* Creates 'directory' anew, with the owner, mode and content of 'path' in the root file system
 * 'rootfs': directories, files (holes and, up to a limit, hard links are preserved), links, FIFOs,
 * and their extended attributes. The path is resolved as in a container, never outside the root
 * file system. If it does not exist there, the directory is empty and belongs to the owner of the
 * root. Owners are as stat() shows them: mapped if the root file system is. 0 or -errno with the
 * place. */
int image_content_copy(const char *rootfs, const char *path, const char *directory, Error *reterr);
