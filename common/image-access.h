/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Determines which images in the store a pod may use without contacting their registry, according
 * to imagePullCredentialsVerificationPolicy. For each image, the store records the repositories
 * from which it was pulled, and with whose credentials:
 *
 *     "access": {"<registry>/<repository>": {"secrets": ["<hash of a pull Secret>", …]}, …}
 *
 * or {"node": true} if the registry required no credentials, or accepted the node's own. The agent
 * applies this to the image that a pod names, and mainstay-image to the images whose layers a pull
 * may reuse. */

#include "common/json-text.h"

#define IMAGE_ACCESS_SOURCE "source:" /* instead of the registry */

/* The prefix of the name of an image of a signed index in the store's index.json, which keeps its
 * blobs. No image name in a pod has this prefix. */
#define IMAGE_NAME_OF_INDEX "index:"

/* A signed index makes images available only to the pods of its fleet. They are recorded under this
 * name, which no repository can have, and with the name as the hash, which no Secret can have. The
 * caller frees it; NULL: out of memory. */
char *image_access_source_name(const char *fleet);

/* The policy: which images do not need such a record. */
typedef struct ImageAccessRules {
        bool opens_all;          /* NeverVerify */
        bool opens_preloaded;    /* NeverVerifyPreloadedImages: images that were not pulled */
        const json_t *allowlist; /* NeverVerifyAllowlistedImages: repositories, or prefixes that end
                                    with '*'; NULL: none. Borrowed */
} ImageAccessRules;

/* Whether every pod may use the images of a repository. */
bool image_access_is_allowlisted(const ImageAccessRules *rules, const char *repository);

/* The entry of a repository in "access", which an earlier version may have spelled differently;
 * NULL: none. */
const json_t *image_access_find(const json_t *access, const char *repository);

/* Whether the registry accepted one of the Secrets, given by their hashes, or needed none. 'entry'
 * is the entry of a repository; NULL: there is none. */
bool image_access_is_recorded(const json_t *entry, const json_t *hashes);
