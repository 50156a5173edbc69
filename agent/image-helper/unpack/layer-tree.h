/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The directory that a layer is unpacked into, on top of the layers below it. Paths are clean names
 * from tar_name_clean(). */

#include "common/error.h"
#include "common/layer-view.h"

#include <stdint.h>

typedef struct LayerTree LayerTree;

/* 'fd' is the empty directory, 'below' the layers under it, topmost first. Both are borrowed. */
int layer_tree_new(int fd, const LayerView *below, LayerTree **ret);

/* Sets owner, mode and times of the top directory, if the tar has no entry for it: those of the
 * layer below, or root's with 0755. 0 or -errno. */
int layer_tree_inherit_top(const LayerTree *tree, Error *reterr);

/* Enters a directory, which is created if missing: with the owner, mode and times of the layer
 * below, or as root's with 0755. A symbolic link on the way is followed as in the container; the
 * path that is finally opened has none. 0 or -errno. */
int layer_tree_enter(LayerTree *tree, const char *parent, Error *reterr);

/* The same, to hide something there. 1; 0 if the container sees no such directory, so that there is
 * nothing to hide; or -errno. */
int layer_tree_enter_to_hide(LayerTree *tree, const char *parent, Error *reterr);

/* The directory that was entered. */
int layer_tree_fd(const LayerTree *tree);

/* Removes this layer's content under the name 'base' in the entered directory, for a new entry. 0
 * or -errno. */
int layer_tree_clear(LayerTree *tree, const char *base, Error *reterr);

/* A directory under that name, which may exist. A descriptor or -errno. */
int layer_tree_make_directory(LayerTree *tree, const char *base, Error *reterr);

/* Hides the content of the layers below under that name; entries of this layer stay, earlier and
 * later ones. 0 or -errno. */
int layer_tree_apply_whiteout(LayerTree *tree, const char *base, Error *reterr);

/* Hides everything that the layers below have in the entered directory. 0 or -errno. */
int layer_tree_apply_opaque(LayerTree *tree, Error *reterr);

/* Makes 'base' in the entered directory a hard link to 'target'. A target that only a lower layer
 * has is copied instead, and *ret_copied is its size: overlayfs would separate the two at the first
 * write anyway. 0 or -errno. */
int layer_tree_link(LayerTree *tree, const char *base, const char *target, uint64_t *ret_copied,
                    Error *reterr);

/* Takes the current times of the entered directory as its final ones. 0 or -errno. */
int layer_tree_keep_times(LayerTree *tree);

/* Leaves the entered directory: restores its times from before entries were added. */
void layer_tree_leave(LayerTree *tree);

LayerTree *layer_tree_free(LayerTree *tree);
DEFINE_CLEANUP(LayerTree *, layer_tree_free)
