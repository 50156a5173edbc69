/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Makes an image archive of a root file system. */

#include "common/error.h"

typedef struct RootfsImport {
        const char *name;     /* of the image, normalised */
        char *const *changes; /* of its configuration: rootfs-config.h */
        int from;             /* the tar, also compressed; may be a pipe */
        int to;               /* an empty regular file, open for reading and writing */
} RootfsImport;

/* Writes an OCI archive with one image of one layer. The same tar and changes give the same bytes.
 * 0, or -errno with a message; then 'to' has to be removed. */
int rootfs_import(const RootfsImport *import, Error *reterr);
