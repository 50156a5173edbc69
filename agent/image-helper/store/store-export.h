/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Writes an image from the store as an OCI archive, which skopeo and podman can read, and which can
 * be placed in preload/. */

#include "agent/image-helper/store/store.h"

/* Writes the image with this name in index.json, or with this digest, to 'fd'. -ENOENT with a
 * message if it does not exist, or if the blobs of its layers are not in the store, as is the case
 * for images from archives. */
int store_export(Store *store, const char *name, int fd, Error *reterr);
