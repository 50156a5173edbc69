/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A layer as it is in the store beside the same layer as it was unpacked just now. */

#include "common/error.h"

#include <sys/types.h>

enum {
        COMPARE_FAULTS_MAX = 100, /* that are told of one layer */
        COMPARE_LINKS = 1024
};

/* A file that has several names, and what was found under one of them. */
typedef struct ComparedLink {
        ino_t sound, here;
        bool is_faulty;
} ComparedLink;

typedef struct TreeComparison {
        bool repairs;  /* what is sound takes the place of what is not */
        char **faults; /* sentences, at most COMPARE_FAULTS_MAX of them */
        unsigned n_faults;
        ComparedLink links[COMPARE_LINKS]; /* by inode, as many as find room */
} TreeComparison;

/* Compares kinds, contents, owners, modes, times (of directories not) and attributes. A repair
 * takes what it needs out of the sound tree, and puts it in place by renames, so that a container
 * that runs on the layer goes on. Both are directories on one file system. 0 or -errno. */
int compare_trees(TreeComparison *comparison, int sound_fd, int fd);

void tree_comparison_done(TreeComparison *comparison);
