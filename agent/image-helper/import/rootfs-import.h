/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Creates an image archive from a root file system. */

#include "common/error.h"

typedef struct RootfsImport {
        const char *name;     /* normalised name of the image */
        char *const *changes; /* changes of its configuration: rootfs-config.h */
        int from;             /* the tar, which may be compressed; may be a pipe */
        int to;               /* an empty regular file, open for reading and writing */
} RootfsImport;

/* Writes an OCI archive with one image, which has one layer. The same tar and changes produce the
 * same bytes. 0; or -errno with a message, in which case the caller must remove 'to'. */
int rootfs_import(const RootfsImport *import, Error *reterr);
