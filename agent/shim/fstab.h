/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The list of mounts that a pod or a container needs, in the format of getmntent(3). Pure: reads
 * text, mounts nothing (see mounts.h).
 *
 * In addition to the options of mount(8), a line of kind "bind" or "rbind" may have
 *   x-mainstay.hostpath=<Type>   the source is a hostPath volume of this Kubernetes type
 *   x-mainstay.volume=<name>     names the volume in error messages
 *   x-mainstay.mode=<octal>      the mode that the root of a new mount gets
 *   x-mainstay.idmap=<file>      owners are mapped as in this user namespace
 *   x-mainstay.beneath=<root>    the source must resolve to a path beneath that directory
 *
 * Values may be quoted, because they may contain commas, like "context=" of mount(8).
 *
 * A line of kind "none", to the target "none", mounts nothing:
 *   x-mainstay.label=<label>     the source and everything in it get this SELinux label
 *   x-mainstay.group=<group>     or this group: volume-group.h
 *
 * A line of type "nfs" with
 *   x-mainstay.nfs=<options>     is mounted by mount.nfs with these options: nfs-mount.h
 *
 * Two more lines of kind "none" mount nothing:
 *   x-mainstay.copy=<rootfs>      the target is a directory that gets a copy of the source, a path
 *                                 in that root file system: image-content.h
 *   x-mainstay.mountpoint=<root>  the target is created below that volume, as a mount point for the
 *                                 source: mounts.c */

#include "common/error.h"

#include <stdint.h>

typedef struct MountSpec {
        char *source;
        char *target;
        char *type;
        char *data; /* options of the file system itself, or NULL */
        bool bind;
        bool recursive;
        unsigned long flags;       /* MS_RDONLY, MS_NOSUID, … */
        unsigned long propagation; /* MS_SHARED, MS_SLAVE, MS_PRIVATE or MS_UNBINDABLE, or 0 */
        bool propagate_all;        /* also for the mounts below */
        char *hostpath_type;       /* NULL: not a hostPath; "" is a valid type */
        char *volume;
        char *mode;
        char *idmap;
        char *beneath;
        char *label;
        char *group;
        char *copy;
        char *mount_point;
        char *nfs;
} MountSpec;

typedef struct Fstab {
        MountSpec *mounts;
        size_t n;
} Fstab;

enum {
        FSTAB_SIZE_MAX = 4 * 1024 * 1024,
};

/* Modifies 'text'. 0; -EINVAL with the line number; -ENOMEM. */
int fstab_parse(char *text, size_t length, Fstab *ret, Error *reterr);

/* Takes the next comma-separated option: like strsep(), except that commas between quotes belong to
 * the option. NULL at the end. */
char *fstab_next_option(char **rest);

/* 0, -ENOENT, another -errno. */
int fstab_load(const char *path, Fstab *ret, Error *reterr);

void fstab_done(Fstab *fstab);
#define cleanup_fstab cleanup_with(fstab_done)
