/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The directory that a layer is unpacked into, atop the layers below it. Paths are clean names as
 * tar_name_clean() makes them. */

#include "agent/image-helper/layer-view.h"
#include "common/error.h"

#include <stdint.h>

typedef struct LayerTree LayerTree;

/* 'fd' is the empty directory, 'below' the layers under it, topmost first. Both are borrowed. */
int layer_tree_new(int fd, const LayerView *below, LayerTree **ret);

/* Gives the top, of which the tar said nothing, owner, mode and times as the layer below has them;
 * or as root's, with 0755. 0 or -errno. */
int layer_tree_inherit_top(const LayerTree *tree, Error *reterr);

/* Goes to a directory, which is made where it is missing: with the owner, mode and times that it
 * has below, or as root's with 0755. A symbolic link on the way is followed as the container would
 * follow it, and what is opened in the end has none on its way. 0 or -errno. */
int layer_tree_enter(LayerTree *tree, const char *parent, Error *reterr);

/* The same, to hide something there. 1; 0 where the container sees no such directory, so that there
 * is nothing to hide; or -errno. */
int layer_tree_enter_to_hide(LayerTree *tree, const char *parent, Error *reterr);

/* The directory that was entered, and what it is called without links. */
int layer_tree_fd(const LayerTree *tree);
const char *layer_tree_path(const LayerTree *tree);

/* Makes room for something new under the name 'base' in the entered directory: what this layer had
 * there is removed. 0 or -errno. */
int layer_tree_clear(LayerTree *tree, const char *base, Error *reterr);

/* A directory under that name, which may be there. A descriptor or -errno. */
int layer_tree_make_directory(LayerTree *tree, const char *base, Error *reterr);

/* Hides what the layers below have under that name; what this layer has stays, before and after. 0
 * or -errno. */
int layer_tree_whiteout(LayerTree *tree, const char *base, Error *reterr);

/* Hides all that the layers below have in the entered directory. 0 or -errno. */
int layer_tree_opaque(LayerTree *tree, Error *reterr);

/* Makes 'base' in the entered directory another name of 'target'. What only a layer below has is
 * copied instead, and *ret_copied is its size: overlayfs would part the two at the first write
 * anyway. 0 or -errno. */
int layer_tree_link(LayerTree *tree, const char *base, const char *target, uint64_t *ret_copied,
                    Error *reterr);

/* Takes the times that the entered directory has now for those it is to have. 0 or -errno. */
int layer_tree_keep_times(LayerTree *tree);

/* Leaves the entered directory: its times become what they were before things were put in. */
void layer_tree_leave(LayerTree *tree);

LayerTree *layer_tree_free(LayerTree *tree);
DEFINE_CLEANUP(LayerTree *, layer_tree_free)
