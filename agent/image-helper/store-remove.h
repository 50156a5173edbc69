/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Takes images out of the store, and looks after what is in it. Who calls this sees to it that
 * nobody unpacks meanwhile. */

#include "agent/image-helper/store.h"

/* Removes the images of those digests: their records first, then their names, then the layers and
 * blobs that no other image has. What is not there is removed. 0 or -errno. */
int store_remove_images(Store *store, char *const *digests, Error *reterr);

/* Prints one line a fault: a blob whose digest is another, a layer that is missing. Returns how
 * many, or -errno. What is in the layers is check.h's to look at. */
int store_verify_blobs(Store *store, Error *reterr);
