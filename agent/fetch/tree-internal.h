/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What tree.c and tree-hide.c share. */

#include "agent/fetch/tree.h"

#include <time.h>

struct Tree {
        int *layers; /* this one, then those below */
        View all;
        View below;
        char *key;  /* the name that was entered, NULL: none */
        char *path; /* what it resolved to */
        int fd;     /* of it */
        struct timespec times[2];
        char **implied; /* directories that are here for whiteouts only */
};

/* What is under a name in a directory of this layer. False where there is nothing. */
bool tree_look(int dir_fd, const char *base, struct stat *ret);

/* "<path of the entered directory>/<base>". 0 or -ENAMETOOLONG. */
int tree_child_path(const Tree *tree, const char *base, char ret[static PATH_MAX]);

/* Keeps overlayfs from merging a directory with what is below it, where there is anything. */
int tree_mark_opaque(const Tree *tree, int fd);

/* A directory was made for a whiteout; the tar itself has it after all. */
void tree_note_implied(Tree *tree, const char *path);
void tree_forget_implied(Tree *tree, const char *path);
