/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Copy-up: copies a file of a lower layer into the layer being unpacked, with its metadata, as
 * overlayfs does before a write. */

#include "common/layer-view.h"

#include <stdint.h>

/* Copies the regular file 'path' of layer 'layer' to 'base' in 'dir_fd', which must not exist. 0,
 * with its size including holes, or -errno. */
int copy_up_file(const LayerView *view, int layer, const char *path, int dir_fd, const char *base,
                 uint64_t *ret_copied);

/* The same for a symbolic link. */
int copy_up_symlink(const LayerView *view, int layer, const char *path, int dir_fd,
                    const char *base, const struct stat *st);
