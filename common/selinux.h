/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The kernel's side of SELinux: labels of files and of what is made next. Which label anything
 * should have is not known here. A label is "user:role:type" or "user:role:type:level". */

#include "common/macros.h"

/* Whether the kernel has it and a policy is loaded. */
bool selinux_is_enabled(void);

/* Whether the loaded policy knows such a label: 0, -EINVAL, or another -errno where nobody can be
 * asked. */
int selinux_check_label(const char *label);

/* What this thread makes from now on has this label; NULL: what the policy says again. It lasts
 * until it is taken back or the thread runs another program. 0 or -errno. */
int selinux_create_as(const char *label);

/* For a variable: whatever was said by selinux_create_as() is taken back at its end. */
typedef bool SelinuxCreating;
static inline void selinux_creating_done(SelinuxCreating *creating) {
        if (*creating)
                (void) selinux_create_as(NULL);
}
#define cleanup_creating cleanup_with(selinux_creating_done)

/* The label of what a descriptor stands for, O_PATH or not. The caller frees it. 0; -ENODATA where
 * it has none, -EOPNOTSUPP where its file system knows of none; another -errno. */
int selinux_label_get(int fd, char **ret);

/* Gives 'path' and all beneath it on the same file system the label, following no link, unless it
 * has it: a directory comes after what is in it, so that what was broken off is begun again. Where
 * the file system has no labels nothing is done. 0, or the first -errno after having labelled what
 * could be. */
int selinux_label_tree(const char *path, const char *label);
