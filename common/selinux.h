/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The kernel's interface of SELinux: labels of files and of newly created files. Which label a file
 * should have is decided elsewhere. A label is "user:role:type" or "user:role:type:level". */

#include "common/macros.h"

/* Whether the kernel supports it and a policy is loaded. */
bool selinux_is_enabled(void);

/* Checks a label against the loaded policy: 0, -EINVAL, or another -errno if that is not
 * possible. */
int selinux_check_label(const char *label);

/* Sets the label of files that this thread creates; NULL: that of the policy. Valid until it is
 * reset or the thread executes a program. 0 or -errno. */
int selinux_create_as(const char *label);

/* For a variable: selinux_create_as() is reset at the end of its scope. */
typedef bool SelinuxCreating;
static inline void selinux_creating_done(SelinuxCreating *creating) {
        if (*creating)
                (void) selinux_create_as(NULL);
}
#define cleanup_creating cleanup_with(selinux_creating_done)

/* The label of the file of a descriptor, O_PATH or not. The caller frees it. 0; -ENODATA without a
 * label, -EOPNOTSUPP if the file system does not support labels; another -errno. */
int selinux_label_get(int fd, char **ret);

/* Sets the label of 'path' and everything beneath it on the same file system, following no link, if
 * it differs: a directory after its contents, so that an interrupted run is repeated. On a
 * file system without labels nothing is done. 0, or the first -errno after as much as possible was
 * labelled. */
int selinux_label_tree(const char *path, const char *label);
