/* SPDX-License-Identifier: Apache-2.0 */

/* A private image that was pulled for one pod is not given to another pod without credentials for
 * it, as the kubelet's image pull manager has it (imagePullCredentialsVerificationPolicy,
 * preloadedImagesVerificationAllowlist). mainstay-image records of each repository of an image
 * which Secret its registry accepted, by a hash, or that it asked for none. */

#include "agent/image/image-store-private.h"

#include "common/cleanup.h"
#include "common/hash.h"
#include "common/json-text.h"

/* "example.com/team/app" of "example.com/team/app:1@sha256:…". */
static char *repository_of_reference(const char *reference) {
        const char *path = strchr(reference, '/');
        size_t n = path ? (size_t) (path - reference) : 0;

        return strndup(reference, n + strcspn(reference + n, ":@"));
}

/* Names are compared as they are completed: "busybox" is "docker.io/library/busybox". */
static bool matches_allowlist_pattern(const char *repository, const char *pattern) {
        size_t n = strlen(pattern);
        cleanup_free char *whole = NULL, *name = NULL;

        if (n > 0 && pattern[n - 1] == '*')
                return strncmp(repository, pattern, n - 1) == 0;
        if (image_reference_normalise(pattern, &whole, NULL) < 0)
                return false;
        name = repository_of_reference(whole);
        return name && streq(name, repository);
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

bool image_access_is_open(const ImageStore *store, const ImageRequest *request, const char *digest,
                          bool is_archived) {
        cleanup_free char *repository = repository_of_reference(request->reference);
        cleanup_json json_t *verified = NULL;
        const json_t *access;

        if (!repository)
                return false;
        if (!needs_confirmed_access(store, repository, is_archived))
                return true;
        /* Where the record cannot be read, access may have been recorded. */
        if (image_verified_load(store, digest, &verified) < 0)
                return false;
        access = json_object_get(verified, "access");
        return !needs_confirmed_access(store, repository, is_archived || !access) ||
               has_confirmed_access(json_object_get(access, repository), request->auths);
}
