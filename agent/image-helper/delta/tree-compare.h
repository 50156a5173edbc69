/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Compares a layer in the store with a freshly unpacked copy of the same layer. */

#include "common/error.h"

#include <sys/types.h>

enum {
        COMPARE_FAULTS_MAX = 100, /* maximum number of reported faults of one layer */
        COMPARE_LINKS = 1024
};

/* A file with several names, and the fault that was found in it. */
typedef struct ComparedLink {
        ino_t sound, here;
        bool is_faulty;
} ComparedLink;

typedef struct TreeComparison {
        bool repairs;  /* replace faulty entries with sound ones */
        char **faults; /* messages, at most COMPARE_FAULTS_MAX */
        unsigned n_faults;
        ComparedLink links[COMPARE_LINKS]; /* hashed by inode, as many as fit */
} TreeComparison;

/* Compares types, contents, owners, modes, times (except of directories) and attributes. A repair
 * renames entries from the sound tree into place, so that a container that uses the layer keeps
 * running. Both descriptors are directories on the same file system. 0 or -errno. */
int compare_trees(TreeComparison *comparison, int sound_fd, int fd);

void tree_comparison_done(TreeComparison *comparison);
