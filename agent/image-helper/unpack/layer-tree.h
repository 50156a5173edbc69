/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The directory into which a layer is unpacked, on top of the lower layers. Paths are clean names
 * from tar_name_clean(). */

#include "common/error.h"
#include "common/layer-view.h"

#include <stdint.h>

typedef struct LayerTree LayerTree;

/* 'fd' is the empty directory, 'below' the lower layers, topmost first. Both are borrowed. */
int layer_tree_new(int fd, const LayerView *below, LayerTree **ret);

/* Sets owner, mode and times of the top directory if the tar has no entry for it: those of the
 * lower layer, or root and 0755. 0 or -errno. */
int layer_tree_inherit_top(const LayerTree *tree, Error *reterr);

/* Enters a directory, which is created if it is missing: with the owner, mode and times in the
 * lower layer, or root and 0755. Symbolic links in the path are followed as in the container; the
 * path that is finally opened contains none. 0 or -errno. */
int layer_tree_enter(LayerTree *tree, const char *parent, Error *reterr);

/* The same, to hide something in it. 1; 0 if the directory does not exist for the container, so
 * that there is nothing to hide; or -errno. */
int layer_tree_enter_to_hide(LayerTree *tree, const char *parent, Error *reterr);

/* The directory that was entered. */
int layer_tree_fd(const LayerTree *tree);

/* Removes this layer's content with the name 'base' in the entered directory, to make room for a
 * new entry. 0 or -errno. */
int layer_tree_clear(LayerTree *tree, const char *base, Error *reterr);

/* Opens or creates a directory with that name. A descriptor or -errno. */
int layer_tree_make_directory(LayerTree *tree, const char *base, Error *reterr);

/* Hides the lower layers' content with that name; all entries of this layer stay, whether they come
 * before or after it. 0 or -errno. */
int layer_tree_apply_whiteout(LayerTree *tree, const char *base, Error *reterr);

/* Hides everything that the lower layers have in the entered directory. 0 or -errno. */
int layer_tree_apply_opaque(LayerTree *tree, Error *reterr);

/* Makes 'base' in the entered directory a hard link to 'target'. A target that exists only in a
 * lower layer is copied instead, and *ret_copied is its size: overlayfs would separate the two at
 * the first write anyway. 0 or -errno. */
int layer_tree_link(LayerTree *tree, const char *base, const char *target, uint64_t *ret_copied,
                    Error *reterr);

/* Makes the current times of the entered directory its final ones. 0 or -errno. */
int layer_tree_keep_times(LayerTree *tree);

/* Leaves the entered directory, and restores the times that it had before entries were added. */
void layer_tree_leave(LayerTree *tree);

LayerTree *layer_tree_free(LayerTree *tree);
DEFINE_CLEANUP(LayerTree *, layer_tree_free)
