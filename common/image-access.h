/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Which images of the store a pod may use without their registry, as
 * imagePullCredentialsVerificationPolicy has it. The store records for each image the repositories
 * that it was pulled from, and with whose credentials:
 *
 *     "access": {"<registry>/<repository>": {"secrets": ["<hash of a pull Secret>", …]}, …}
 *
 * or {"node": true} if the registry required no credentials, or accepted the node's own. The agent
 * applies this to the image that a pod names, mainstay-image to those whose layers a pull may
 * reuse. */

#include "common/json-text.h"

#define IMAGE_ACCESS_SOURCE "source:" /* in place of the registry */

/* The start of the name that the store's index.json has of an image of a signed index, so that its
 * blobs are kept. No pod has such a name. */
#define IMAGE_NAME_OF_INDEX "index:"

/* A signed index gives images to the pods of its fleet only. They are recorded under this name,
 * which no repository has, and with it as the hash, which no Secret has. The caller frees it; NULL:
 * out of memory. */
char *image_access_source_name(const char *fleet);

/* The policy: the images that need no such record. */
typedef struct ImageAccessRules {
        bool opens_all;          /* NeverVerify */
        bool opens_preloaded;    /* NeverVerifyPreloadedImages: those that were not pulled */
        const json_t *allowlist; /* NeverVerifyAllowlistedImages: repositories, with a '*' at the
                                    end those that start so; NULL: none. Borrowed */
} ImageAccessRules;

/* Whether every pod may use the images of a repository. */
bool image_access_is_allowlisted(const ImageAccessRules *rules, const char *repository);

/* The entry of a repository in "access", which an earlier version may have spelled differently;
 * NULL: none. */
const json_t *image_access_find(const json_t *access, const char *repository);

/* Whether one of the Secrets, by their hashes, was accepted, or none was needed. 'entry' is that of
 * a repository; NULL: it has no image. */
bool image_access_is_recorded(const json_t *entry, const json_t *hashes);
