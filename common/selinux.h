/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The kernel's SELinux interface: labels of files, and of newly created files. Other modules choose
 * the label of a file. A label is "user:role:type" or "user:role:type:level". */

#include "common/macros.h"

/* Whether the kernel supports it and a policy is loaded. */
bool selinux_is_enabled(void);

/* Checks a label against the loaded policy: 0, -EINVAL, or another -errno if checking is not
 * possible. */
int selinux_check_label(const char *label);

/* Sets the label of files that this thread creates; NULL: the policy's default. Valid until it is
 * reset or the thread executes a program. 0 or -errno. */
int selinux_create_as(const char *label);

/* For a variable: resets selinux_create_as() at the end of its scope. */
typedef bool SelinuxCreating;
static inline void selinux_creating_done(SelinuxCreating *creating) {
        if (*creating)
                (void) selinux_create_as(NULL);
}
#define cleanup_creating cleanup_with(selinux_creating_done)

/* The label of the file behind a descriptor, O_PATH or not. The caller frees it. 0; -ENODATA
 * without a label, -EOPNOTSUPP if the file system does not support labels; another -errno. */
int selinux_label_get(int fd, char **ret);

/* Sets the label of 'path' and everything below it on the same file system, following no links,
 * where it differs. A directory is labelled after its contents, so that an interrupted run is
 * repeated. Does nothing on a file system without labels. 0, or the first -errno after labelling as
 * much as possible. */
int selinux_label_tree(const char *path, const char *label);
