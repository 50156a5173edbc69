/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Fetches an image that a signed index names from the location of the index (mainstay-source(5)),
 * over HTTPS or from a USB stick, and unpacks it into the store. */

#include "agent/image-helper/pull/pull-request.h"
#include "agent/image-helper/store/store.h"

/* 'reference' is normalised, and 'digest' is the index's digest for this machine; the settings
 * contain the source. The index was verified when it arrived: each blob is listed in it, and is
 * verified by its digest. A delta is used if its base came from the same source. No registry is
 * contacted. Drops all privileges that unpacking does not need. Prints progress and the digest like
 * a pull. 0, or -errno with a message: -EAGAIN if the source cannot be reached. */
int fetch_image(const char *reference, const char *digest, const PullSettings *settings,
                Store *store, Error *reterr);
