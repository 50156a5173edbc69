/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The mounts that the shim makes, in the format of getmntent(3). Pure functions: they return
 * text. */

#include "agent/bundle/runtime-spec-input.h"

#include <stdio.h>

/* The pod's mounts: /dev/shm, hostPath volumes (the shim checks their type), emptyDirs in memory.
 * NULL: out of memory. */
char *pod_fstab(const BundleConfig *config, const Pod *pod);

/* The container's mounts: its root filesystem, which is an overlay of the image's layers and a
 * writable layer, with the given label on all files (NULL: none). NULL: out of memory. */
char *container_fstab(const Image *image, const char *bundle_dir, const char *state_dir,
                      const char *users, const char *label);

/* Binds a whole volume to a target, ID-mapped for the given users. */
void fstab_put_whole(FILE *out, const char *root, const char *target, const char *volume,
                     const char *users);

/* "<bundle>/<kind>/<number>": where the shim mounts what the runtime then binds into the container.
 * The caller frees it; NULL: out of memory. */
char *shim_mount_target(const RuntimeSpecInput *input, const char *kind, size_t number);

/* Binds a path of the node to a target. 'type' is the type of the hostPath volume, "" for any: the
 * shim checks the type, and creates a missing file or directory if the type requires that. */
void fstab_put_host_path(FILE *out, const char *path, const char *target, const char *volume,
                         const char *type);

/* Mounts nothing, but relabels all files in the path. 'volume' may be NULL. */
void fstab_put_label(FILE *out, const char *path, const char *volume, const char *label);

/* ',context="<label>"' for a label of all files of a mount, or nothing. */
void fstab_put_context(FILE *out, const char *label);

/* ",x-mainstay.idmap=<users>", or nothing. */
void fstab_put_users(FILE *out, const char *users);

/* Binds the layers of an image below a directory, ID-mapped for the given users; then appends their
 * paths in the syntax of overlayfs' lowerdir=. */
void fstab_put_layers(FILE *out, const Image *image, const char *directory, const char *users);
void fstab_put_lower(FILE *out, const Image *image, const char *directory, const char *users);

/* Mounts nothing, but copies the content of the path in a root file system to a directory. */
void fstab_put_copy(FILE *out, const char *path, const char *directory, const char *rootfs);

/* Mounts nothing, but creates the mount point for 'source': a directory or a file at 'path' below a
 * volume's root. */
void fstab_put_mount_point(FILE *out, const char *source, const char *root, const char *path,
                           const char *volume);

/* A line of the container's fstab: a path below a volume's root (subPath), which the shim binds to
 * the target. */
void fstab_put_beneath(FILE *out, const char *root, const char *path, const char *target,
                       const char *volume, const char *users);
