/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Images for a signed index: each is copied whole, and not unpacked, from a registry or from an OCI
 * layout, into a store that keeps nothing else. */

#include "agent/image-helper/pull/pull-request.h"
#include "agent/image-helper/store/store.h"

/* The image of a normalised reference, for the platform that was chosen (platform.h), by its name.
 * 'from' is an open archive or an open directory with an OCI layout, or negative: a registry. Every
 * blob is verified by its digest. A line of JSON on standard output is its entry in the index, as
 * mainstay-source(5) has those of "platforms". 0; -ENOENT with a message if it is not there; or
 * another -errno. Drops all privileges. */
int collect_image(const char *reference, int from, const PullSettings *settings, Store *store,
                  Error *reterr);

/* A delta between two images of such a store, by their digests: its blobs are added to the store,
 * and a line of JSON is its entry, as those of "deltas". Likewise. */
int collect_delta(const char *old, const char *new, Store *store, Error *reterr);
