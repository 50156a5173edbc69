/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Removes images from the store, and checks blobs and records. The caller makes sure that nothing
 * is unpacked at the same time. */

#include "agent/image-helper/store/store.h"

/* Removes the images of those digests: first their records, then their names, then layers and blobs
 * that no other image needs. Missing ones count as removed. 0 or -errno. */
int store_remove_images(Store *store, char *const *digests, Error *reterr);

/* Removes the parts of blobs that nothing needs: the whole blob is there, or the download was
 * interrupted a week ago. 0 or -errno. */
int store_sweep_downloads(const Store *store);

/* Prints one line for each fault: a blob with a wrong digest, a missing layer. Returns how many, or
 * -errno. The contents of layers are checked by layer-verify.h. */
int store_verify_blobs(Store *store, Error *reterr);
