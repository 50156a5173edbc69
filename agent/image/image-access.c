/* SPDX-License-Identifier: Apache-2.0 */

/* A private image that was pulled for one pod is not given to another pod without credentials for
 * it, as the kubelet's image pull manager has it (imagePullCredentialsVerificationPolicy,
 * preloadedImagesVerificationAllowlist). mainstay-image records of each repository of an image
 * which Secret its registry accepted, by a hash, or that it asked for none. */

#include "agent/image/image-store-private.h"

#include "common/cleanup.h"
#include "common/hash.h"
#include "common/image-reference.h"
#include "common/json-text.h"

/* "registry.example.com/team/" and a star. */
static bool matches_allowlist_prefix(const char *repository, const char *pattern) {
        cleanup_free char *start = strndup(pattern, strlen(pattern) - strlen("/*")), *prefix = NULL;
        size_t n;

        if (!start || image_reference_normalise_prefix(start, &prefix, NULL) < 0)
                return false;
        n = strlen(prefix);
        return strncmp(repository, prefix, n) == 0 && repository[n] == '/';
}

/* Names are compared as they are completed: "busybox" is "docker.io/library/busybox". */
static bool matches_allowlist_pattern(const char *repository, const char *pattern) {
        cleanup_free char *name = NULL;

        if (strchr(pattern, '*'))
                return matches_allowlist_prefix(repository, pattern);
        return image_reference_repository(pattern, &name, NULL) >= 0 && streq(name, repository);
}

static bool is_allowlisted(const Config *config, const char *repository) {
        for (char *const *pattern = config->preloaded_images_allowlist; pattern && *pattern;
             pattern++)
                if (matches_allowlist_pattern(repository, *pattern))
                        return true;
        return false;
}

static bool needs_confirmed_access(const ImageStore *store, const char *repository,
                                   bool is_preloaded) {
        switch (store->node_config ? store->node_config->image_credentials_policy
                                   : CREDENTIALS_POLICY_UNSET) {
        case CREDENTIALS_NEVER:
                return false;
        case CREDENTIALS_NEVER_OF_ALLOWLISTED:
                return !is_allowlisted(store->node_config, repository);
        case CREDENTIALS_ALWAYS:
                return true;
        case CREDENTIALS_POLICY_UNSET:
        case CREDENTIALS_NEVER_OF_PRELOADED:
        case N_CREDENTIALS_POLICIES:
                break;
        }
        return !is_preloaded;
}

static bool is_hash_recorded(const json_t *secrets, const char *document) {
        char hash[SHA256_HEX_SIZE];
        const json_t *item;
        size_t i;

        sha256_hex(document, strlen(document), hash);
        json_array_foreach(secrets, i, item)
                if (streq_ptr(json_string_value(item), hash))
                        return true;
        return false;
}

static bool has_confirmed_access(const json_t *entry, char *const *auths) {
        if (json_is_true(json_object_get(entry, "node")))
                return true;
        for (; auths && *auths; auths++)
                if (is_hash_recorded(json_object_get(entry, "secrets"), *auths))
                        return true;
        return false;
}

/* What is recorded for a repository; an earlier version may have spelled its name differently. */
static const json_t *find_access_entry(const json_t *access, const char *repository) {
        const json_t *entry = json_object_get(access, repository), *other;
        const char *name;

        json_object_foreach((json_t *) (uintptr_t) access, name, other) {
                cleanup_free char *normal = NULL;

                if (!entry && image_reference_repository(name, &normal, NULL) >= 0 &&
                    streq(normal, repository))
                        entry = other;
        }
        return entry;
}

bool image_access_is_open(const ImageStore *store, const ImageRequest *request, const char *digest,
                          bool is_archived) {
        cleanup_free char *repository = NULL;
        cleanup_json json_t *verified = NULL;
        const json_t *access;

        if (image_reference_repository(request->reference, &repository, NULL) < 0)
                return false;
        if (!needs_confirmed_access(store, repository, is_archived))
                return true;
        /* Where the record cannot be read, access may have been recorded. */
        if (image_verified_load(store, digest, &verified) < 0)
                return false;
        access = json_object_get(verified, "access");
        return !needs_confirmed_access(store, repository, is_archived || !access) ||
               has_confirmed_access(find_access_entry(access, repository), request->auths);
}
