/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The mounts that the shim makes, in the format that getmntent(3) reads. Pure functions: they
 * return text. The shim performs them. */

#include "agent/bundle/runtime-spec-input.h"

#include <stdio.h>

/* The pod's mounts: /dev/shm, hostPath volumes (the shim checks their type), emptyDirs in memory.
 * NULL: out of memory. */
char *pod_fstab(const BundleConfig *config, const Pod *pod);

/* The container's mounts: its root filesystem, an overlay of the image's layers and a writable
 * layer, with the given label for all of it, or NULL. NULL: out of memory. */
char *container_fstab(const Image *image, const char *bundle_dir, const char *state_dir,
                      const char *users, const char *label);

/* Binds a whole volume to a target, ID-mapped for the given users. */
void fstab_put_whole(FILE *out, const char *root, const char *target, const char *volume,
                     const char *users);

/* "<bundle>/<kind>/<number>": where the shim makes a mount that the runtime binds into the
 * container. The caller frees it; NULL: out of memory. */
char *shim_mount_target(const RuntimeSpecInput *input, const char *kind, size_t number);

/* Binds a path of the node to a target. 'type' is that of a hostPath volume, "" for any: the shim
 * checks it, and makes what does not exist if the type says so. */
void fstab_put_host_path(FILE *out, const char *path, const char *target, const char *volume,
                         const char *type);

/* Mounts nothing, but relabels all files below the path. 'volume' may be NULL. */
void fstab_put_label(FILE *out, const char *path, const char *volume, const char *label);

/* ',context="<label>"' for all files of a mount, or nothing. */
void fstab_put_context(FILE *out, const char *label);

/* ",x-mainstay.idmap=<users>", or nothing. */
void fstab_put_users(FILE *out, const char *users);

/* The layers of an image, each bound below a directory, ID-mapped for the given users; then their
 * paths as overlayfs takes them in lowerdir=. */
void fstab_put_layers(FILE *out, const Image *image, const char *directory, const char *users);
void fstab_put_lower(FILE *out, const Image *image, const char *directory, const char *users);

/* Mounts nothing, but gives a directory the content that the path has in a root file system. */
void fstab_put_copy(FILE *out, const char *path, const char *directory, const char *rootfs);

/* Mounts nothing, but creates the mount point for 'source': a directory or a file at 'path' below a
 * volume's root. */
void fstab_put_mount_point(FILE *out, const char *source, const char *root, const char *path,
                           const char *volume);

/* A line of the container's fstab: a path beneath a volume's root (subPath), which the shim binds
 * to the target. */
void fstab_put_beneath(FILE *out, const char *root, const char *path, const char *target,
                       const char *volume, const char *users);
