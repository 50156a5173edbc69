/* SPDX-License-Identifier: Apache-2.0 */

/* A pod without credentials for a private image that was pulled for another pod cannot use it,
 * neither as a whole nor as layers of another image, as in the kubelet's image pull manager
 * (imagePullCredentialsVerificationPolicy, preloadedImagesVerificationAllowlist). mainstay-image
 * records for each repository of an image which Secret its registry accepted, by a hash, or that it
 * required none (common/image-access.h). */

#include "agent/image/image-store-private.h"

#include "agent/image/pull-secret.h"
#include "common/cleanup.h"
#include "common/image-access.h"
#include "common/image-reference.h"
#include "common/text.h"

/* Names are compared in their complete form: "busybox" is "docker.io/library/busybox". */
static char *normalise_allowlist_pattern(const char *pattern) {
        cleanup_free char *start = NULL, *prefix = NULL;
        char *repository = NULL;

        if (!strchr(pattern, '*'))
                return image_reference_repository(pattern, &repository, NULL) < 0 ? NULL
                                                                                  : repository;
        start = strndup(pattern, strlen(pattern) - strlen("/*"));
        if (!start || image_reference_normalise_prefix(start, &prefix, NULL) < 0)
                return NULL;
        return text_format("%s/*", prefix);
}

static json_t *allowlist_to_json(const Config *config) {
        json_t *allowlist = json_array();

        for (char *const *pattern = config->preloaded_images_allowlist; pattern && *pattern;
             pattern++) {
                cleanup_free char *normal = normalise_allowlist_pattern(*pattern);

                if (normal)
                        (void) json_array_append_new(allowlist, json_string(normal));
        }
        return allowlist;
}

/* The caller frees '*ret_allowlist'. */
static ImageAccessRules find_access_rules(const ImageStore *store, json_t **ret_allowlist) {
        *ret_allowlist = NULL;
        switch (store->node_config ? store->node_config->image_credentials_policy
                                   : CREDENTIALS_POLICY_UNSET) {
        case CREDENTIALS_NEVER:
                return (ImageAccessRules){ .opens_all = true };
        case CREDENTIALS_NEVER_OF_ALLOWLISTED:
                *ret_allowlist = allowlist_to_json(store->node_config);
                return (ImageAccessRules){ .allowlist = *ret_allowlist };
        case CREDENTIALS_ALWAYS:
                return (ImageAccessRules){ 0 };
        case CREDENTIALS_POLICY_UNSET:
        case CREDENTIALS_NEVER_OF_PRELOADED:
        case N_CREDENTIALS_POLICIES:
                break;
        }
        return (ImageAccessRules){ .opens_preloaded = true };
}

static bool is_name_of_repository(const char *name, const char *repository) {
        cleanup_free char *own = NULL;

        return image_reference_repository(name, &own, NULL) >= 0 && streq(own, repository);
}

static bool is_archived_in_repository(const ArchivedImage *image, const char *repository) {
        for (char *const *name = image->names; name && *name; name++)
                if (is_name_of_repository(*name, repository))
                        return true;
        return false;
}

/* A reference with a digest finds the image under any repository, but only a repository from which
 * the image has come, or by which it is named, is relevant. */
static bool is_image_of_repository(const ImageStore *store, const char *digest,
                                   const char *repository, const json_t *access) {
        if (image_access_find(access, repository))
                return true;
        for (size_t i = 0; i < store->image_names.n_names; i++)
                if (streq(store->image_names.names[i].digest, digest) &&
                    is_name_of_repository(store->image_names.names[i].name, repository))
                        return true;
        for (size_t i = 0; i < store->preload.archives.n_archives; i++) {
                const Archive *archive = store->preload.archives.archives[i];

                for (size_t k = 0; k < archive->n_images; k++)
                        if (streq(archive->images[k].digest, digest) &&
                            is_archived_in_repository(&archive->images[k], repository))
                                return true;
        }
        return false;
}

bool image_access_is_open(const ImageStore *store, const ImageRequest *request, const char *digest,
                          bool is_archived) {
        cleanup_free char *repository = NULL;
        cleanup_json json_t *allowlist = NULL, *verified = NULL, *hashes = NULL;
        ImageAccessRules rules = find_access_rules(store, &allowlist);
        const json_t *access;
        int r;

        if (rules.opens_all || (rules.opens_preloaded && is_archived))
                return true;
        if (image_reference_repository(request->reference, &repository, NULL) < 0)
                return false;
        /* If the record cannot be read, it may contain access restrictions. */
        r = image_verified_load(store, digest, &verified);
        access = json_object_get(verified, "access");
        if (r >= 0 && rules.opens_preloaded && !access)
                return true;
        if (image_access_is_allowlisted(&rules, repository) &&
            is_image_of_repository(store, digest, repository, access))
                return true;
        hashes = pull_secret_list_hashes(&request->secrets);
        return image_access_is_recorded(image_access_find(access, repository), hashes);
}

bool image_access_is_of_source(const ImageStore *store, const char *digest, const char *fleet) {
        cleanup_free char *name = image_access_source_name(fleet);
        cleanup_json json_t *verified = NULL, *hashes = name ? json_pack("[s]", name) : NULL;

        return hashes && image_verified_load(store, digest, &verified) >= 0 &&
               image_access_is_recorded(
                       image_access_find(json_object_get(verified, "access"), name), hashes);
}

/* Excludes images that, if present, must have come from a registry. */
static json_t *archived_digests_to_json(const ArchiveSet *archives) {
        json_t *digests = json_array();

        for (size_t i = 0; i < archives->n_archives; i++)
                for (size_t k = 0; k < archives->archives[i]->n_images; k++) {
                        const ArchivedImage *image = &archives->archives[i]->images[k];

                        if (!image->failure && !image->refusal)
                                (void) json_array_append_new(digests, json_string(image->digest));
                }
        return digests;
}

json_t *image_access_to_json(const ImageStore *store) {
        cleanup_json json_t *allowlist = NULL;
        ImageAccessRules rules = find_access_rules(store, &allowlist);

        return json_pack("{s:b, s:b, s:O*, s:o}", "opensAll", rules.opens_all, "opensPreloaded",
                         rules.opens_preloaded, "allowlist", allowlist, "archived",
                         archived_digests_to_json(&store->preload.archives));
}
