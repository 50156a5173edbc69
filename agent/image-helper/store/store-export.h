/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Writes an image of the store as an OCI archive, which skopeo, podman and preload/ read. */

#include "agent/image-helper/store/store.h"

/* Writes to 'fd' the image with this name in index.json or this digest. -ENOENT with a message if
 * it does not exist, or if its layers' blobs are not in the store, as for images from archives. */
int store_export(Store *store, const char *name, int fd, Error *reterr);
