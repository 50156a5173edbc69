/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The list of mounts that a pod or a container needs, as getmntent(3) reads it. Pure: reads text,
 * mounts nothing.
 *
 * Beside the options of mount(8) a line of kind "bind" or "rbind" may carry
 *   x-mainstay.hostpath=<Type>   the source is a hostPath volume of this Kubernetes type
 *   x-mainstay.volume=<name>     names the volume in what goes wrong
 *   x-mainstay.mode=<octal>      the mode of a new mount's root, afterwards
 *   x-mainstay.idmap=<file>      users appear as those of this user namespace
 *   x-mainstay.beneath=<root>    the source must lie beneath that directory, whatever links say
 * Values may be quoted, for the commas in them, as "context=" is by mount(8).
 *
 * A line of no kind, to the target "none", mounts nothing:
 *   x-mainstay.label=<label>     the source and all in it get this label of SELinux's */

#include "common/error.h"

#include <stdint.h>

typedef struct MountSpec {
        char *source;
        char *target;
        char *type;
        char *data; /* options that are the file system's own, or NULL */
        bool bind;
        bool recursive;
        unsigned long flags;       /* MS_RDONLY, MS_NOSUID, … */
        unsigned long propagation; /* MS_SHARED, MS_SLAVE, MS_PRIVATE or MS_UNBINDABLE, or 0 */
        bool propagate_all;        /* to the mounts below as well */
        char *hostpath_type;       /* NULL: no hostPath; "" is a type */
        char *volume;
        char *mode;
        char *idmap;
        char *beneath;
        char *label;
} MountSpec;

typedef struct Fstab {
        MountSpec *mounts;
        size_t n;
} Fstab;

enum {
        FSTAB_SIZE_MAX = 4 * 1024 * 1024,
};

/* 'text' is changed. 0; -EINVAL with the number of the line; -ENOMEM. */
int fstab_parse(char *text, size_t length, Fstab *ret, Error *reterr);

/* 0, -ENOENT, another -errno. */
int fstab_load(const char *path, Fstab *ret, Error *reterr);

void fstab_done(Fstab *fstab);
#define cleanup_fstab cleanup_with(fstab_done)
