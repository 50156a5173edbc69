/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The mounts that the shim makes, in the format that getmntent(3) reads. Pure functions: text out.
 */

#include "agent/bundle/bundle.h"

#include <stdio.h>

/* The pod's: /dev/shm, hostPath volumes (checked by the shim), emptyDirs in memory. NULL: no
 * memory. */
char *pod_fstab(const BundleConfig *config, const Pod *pod);

/* The container's: its root file system, the image's layers below a writable one, with that label
 * for all of it, or NULL. NULL: no memory. */
char *container_fstab(const Image *image, const char *bundle_dir, const char *state_dir,
                      const char *users, const char *label);

/* All of a volume at another place, for those users. */
void fstab_put_whole(FILE *out, const char *root, const char *target, const char *volume,
                     const char *users);

/* Mounts nothing, but gives all that lies there the label. 'volume' may be NULL. */
void fstab_put_label(FILE *out, const char *path, const char *volume, const char *label);

/* ',context="<label>"' for all files of a mount, or nothing. */
void fstab_put_context(FILE *out, const char *label);

/* ",x-mainstay.idmap=<users>", or nothing. */
void fstab_put_users(FILE *out, const char *users);

/* The layers of an image, mounted one by one below a directory, for those users; then, as what
 * overlayfs is told, where they are. */
void fstab_put_layers(FILE *out, const Image *image, const char *directory, const char *users);
void fstab_put_lower(FILE *out, const Image *image, const char *directory, const char *users);

/* A line of the container's: a path beneath a volume's root, which the shim binds to the target. */
void fstab_put_beneath(FILE *out, const char *root, const char *path, const char *target,
                       const char *volume, const char *users);
