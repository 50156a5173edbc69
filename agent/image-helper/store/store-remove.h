/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Removes images from the store, and checks blobs and records. The caller ensures that nothing is
 * unpacked at the same time. */

#include "agent/image-helper/store/store.h"

/* Removes the images with those digests: first their records, then their names, then the layers and
 * blobs that no other image needs. Missing images count as removed. 0 or -errno. */
int store_remove_images(Store *store, char *const *digests, Error *reterr);

/* Removes partial blobs that are no longer needed: the whole blob exists, or the download was
 * interrupted a week ago. 0 or -errno. */
int store_sweep_downloads(const Store *store);

/* Prints one line for each fault: a blob with a wrong digest, a missing layer. Returns the number
 * of faults, or -errno. layer-verify.h checks the contents of layers. */
int store_verify_blobs(Store *store, Error *reterr);
