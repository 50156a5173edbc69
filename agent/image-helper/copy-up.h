/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Copies what a layer below has into the layer at work, with all that belongs to it, as overlayfs
 * does before it writes. */

#include "agent/image-helper/layer-view.h"

#include <stdint.h>

/* The regular file 'path' of layer 'layer' becomes 'base' in 'dir_fd', which must not be there. 0,
 * with its size, holes counted, or -errno. */
int copy_up_file(const LayerView *view, int layer, const char *path, int dir_fd, const char *base,
                 uint64_t *ret_copied);

/* The same for a symbolic link. */
int copy_up_symlink(const LayerView *view, int layer, const char *path, int dir_fd,
                    const char *base, const struct stat *st);
