/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What tree.c and tree-hide.c share. */

#include "agent/image-helper/layer-tree.h"

#include <time.h>

struct LayerTree {
        int *layers; /* this one, then those below */
        LayerView all;
        LayerView below;
        char *key;  /* the name that was entered, NULL: none */
        char *path; /* what it resolved to */
        int fd;     /* of it */
        struct timespec times[2];
        char **implied; /* directories that are here for whiteouts only */
};

/* What is under a name in a directory of this layer. False where there is nothing. */
bool layer_tree_lookup(int dir_fd, const char *base, struct stat *ret);

/* "<path of the entered directory>/<base>". 0 or -ENAMETOOLONG. */
int layer_tree_child_path(const LayerTree *tree, const char *base, char ret[static PATH_MAX]);

/* Keeps overlayfs from merging a directory with what is below it, where there is anything. */
int layer_tree_mark_opaque(const LayerTree *tree, int fd);

/* A directory was made for a whiteout; the tar itself has it after all. */
void layer_tree_add_implied(LayerTree *tree, const char *path);
void layer_tree_remove_implied(LayerTree *tree, const char *path);
