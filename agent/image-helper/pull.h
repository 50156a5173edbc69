/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Brings an image from its registry into the store. */

#include "agent/image-helper/pull-settings.h"
#include "agent/image-helper/store.h"

/* 'reference' is normalised. Gives up all privileges but those of unpacking. On success one line of
 * JSON on standard output says what came: {"digest": …}. 0, or -errno with the sentence, and then
 * the store has no more than before but blobs that are worth going on with. */
int pull_image(const char *reference, const PullSettings *settings, Store *store, Error *reterr);
