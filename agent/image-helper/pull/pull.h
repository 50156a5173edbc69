/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Pulls an image from its registry into the store. */

#include "agent/image-helper/pull/pull-request.h"
#include "agent/image-helper/store/store.h"

/* 'reference' is normalised. Drops all privileges that unpacking does not need. On success, prints
 * one line of JSON that names the image on standard output: {"digest": …}. 0, or -errno with a
 * message; then nothing was added to the store except partial blobs, with which a retry
 * continues. */
int pull_image(const char *reference, const PullSettings *settings, Store *store, Error *reterr);
