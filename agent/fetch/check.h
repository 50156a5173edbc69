/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Whether the layers in the store are still what they were unpacked from: each is unpacked once
 * more beside it, from the blob or the archive, and the two are compared. Nothing need be
 * remembered for it, and what is damaged can be put right at once. */

#include "agent/fetch/manifest.h"
#include "agent/fetch/store.h"

typedef struct Check {
        bool repairs;
        char **seen;     /* ChainIDs that have been looked at */
        unsigned faults; /* that were printed, one line each */
} Check;

/* The layers of an image that the store has by its record; of others nothing is looked at. 0, or
 * -errno with the sentence where the source fails. */
int check_image(Check *check, const CatalogImage *image, const ImageSource *source, Store *store,
                Error *reterr);

/* All images whose layers' blobs are in the store. 0 or -errno. */
int check_store(Check *check, Store *store, Error *reterr);

void check_done(Check *check);
