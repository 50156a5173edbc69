/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The images of a signed index that is being created: mainstay-image finds them in archives,
 * layouts and registries, and stores them and deltas next to the index. */

#include "agent/cli/cli.h"
#include "agent/manifest/manifest.h"
#include "agent/model/source-index.h"

typedef struct IndexImagesMaker IndexImagesMaker;

/* 'before' is the current index of the directory (empty: none). All arguments are borrowed. 0, or
 * -errno with a message. */
int index_images_maker_new(const Options *options, int directory_fd, const SourceIndex *before,
                           IndexImagesMaker **ret, Error *reterr);
IndexImagesMaker *index_images_maker_free(IndexImagesMaker *maker);
DEFINE_CLEANUP(IndexImagesMaker *, index_images_maker_free)

/* Adds the images that the objects name. 0 or -errno. */
int index_images_maker_add(IndexImagesMaker *maker, const ManifestObjects *objects);

/* Finds all of them, and copies their blobs and deltas to the directory, unless it is only checked.
 * Returns the member "images" of the index, which the caller frees; NULL: no images are named. 0,
 * or -errno with a message. */
int index_images_maker_collect(IndexImagesMaker *maker, json_t **ret, Error *reterr);

/* Prints the new parts of the index, and what a node of each selector fetches. */
void index_images_maker_explain(const IndexImagesMaker *maker, const SourceIndex *index);

/* The index is in the directory: writes the OCI layout of its images, removes the blobs of others,
 * and keeps the images for later deltas. 0, or -errno with a message. */
int index_images_maker_finish(IndexImagesMaker *maker, const SourceIndex *index, const char *text,
                              Error *reterr);

/* Whether the directory contains all blobs of the images as they were signed. 0, or -errno with a
 * message. */
int index_images_verify(int directory_fd, const SourceIndex *index, Error *reterr);
