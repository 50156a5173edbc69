/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Declarations that layer-tree.c and layer-tree-whiteout.c share. */

#include "agent/image-helper/unpack/layer-tree.h"

#include <time.h>

struct LayerTree {
        int *layers; /* this layer, then those below */
        LayerView all;
        LayerView below;
        char *key;  /* the directory that was entered; NULL: none */
        char *path; /* its path with links resolved */
        int fd;     /* the directory */
        struct timespec times[2];
        char **implied; /* directories that exist only for whiteouts */
};

/* The type of a name in a directory of this layer. False if it does not exist. */
bool layer_tree_lookup(int dir_fd, const char *base, struct stat *ret);

/* "<path of the entered directory>/<base>". 0 or -ENAMETOOLONG. */
int layer_tree_child_path(const LayerTree *tree, const char *base, char ret[static PATH_MAX]);

/* Keeps overlayfs from merging a directory with the one in a lower layer, if there is one. */
int layer_tree_mark_opaque(const LayerTree *tree, int fd);

/* Records a directory that was created only for a whiteout. */
void layer_tree_add_implied(LayerTree *tree, const char *path);
void layer_tree_remove_implied(LayerTree *tree, const char *path);
