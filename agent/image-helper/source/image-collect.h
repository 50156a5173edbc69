/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Images for a signed index: each image is copied as a whole, without being unpacked, from a
 * registry or an OCI layout into a store that contains nothing else. */

#include "agent/image-helper/pull/pull-request.h"
#include "agent/image-helper/store/store.h"

/* Copies the image of a normalised reference for the selected platform (platform.h). 'from' is an
 * open archive or an open directory with an OCI layout; negative: a registry. Every blob is
 * verified by its digest. Prints a line of JSON on standard output: its entry in "platforms" of the
 * index, see mainstay-source(5). 0; -ENOENT with a message if it does not exist; or another -errno.
 * Drops all privileges. */
int collect_image(const char *reference, int from, const PullSettings *settings, Store *store,
                  Error *reterr);

/* Creates a delta between two images in such a store, by their digests: adds its blobs to the
 * store, and prints a line of JSON: its entry in "deltas". Returns the same. */
int collect_delta(const char *old, const char *new, Store *store, Error *reterr);
