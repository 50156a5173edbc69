/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Writes an image of the store as an OCI archive, which skopeo, podman and preload/ read. */

#include "agent/image-helper/store.h"

/* To 'fd', by the name that index.json has or by the image's digest. -ENOENT with the sentence
 * where there is none, or where the store lacks its layers' blobs, as of images from archives. */
int store_export(Store *store, const char *name, int fd, Error *reterr);
