/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Compares a layer in the store with the same layer as it was unpacked just now. */

#include "common/error.h"

#include <sys/types.h>

enum {
        COMPARE_FAULTS_MAX = 100, /* limit of reported faults for one layer */
        COMPARE_LINKS = 1024
};

/* A file with several names, and the fault that was found under one of them. */
typedef struct ComparedLink {
        ino_t sound, here;
        bool is_faulty;
} ComparedLink;

typedef struct TreeComparison {
        bool repairs;  /* faulty entries are replaced by sound ones */
        char **faults; /* messages, at most COMPARE_FAULTS_MAX of them */
        unsigned n_faults;
        ComparedLink links[COMPARE_LINKS]; /* by inode, as many as fit */
} TreeComparison;

/* Compares types, contents, owners, modes, times (not of directories) and attributes. A repair
 * moves entries out of the sound tree into place by renames, so that a container running on the
 * layer continues. Both are directories on one file system. 0 or -errno. */
int compare_trees(TreeComparison *comparison, int sound_fd, int fd);

void tree_comparison_done(TreeComparison *comparison);
