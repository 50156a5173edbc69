/* SPDX-License-Identifier: Apache-2.0 */
#include "common/image-access.h"

#include "common/cleanup.h"
#include "common/image-reference.h"
#include "common/text.h"

#include <stdint.h>

char *image_access_source_name(const char *fleet) {
        return text_format(IMAGE_ACCESS_SOURCE "/%s", fleet);
}

static bool matches_repository_pattern(const char *repository, const char *pattern) {
        size_t n = strlen(pattern);

        if (n > 0 && pattern[n - 1] == '*')
                return strncmp(repository, pattern, n - 1) == 0;
        return streq(repository, pattern);
}

bool image_access_is_allowlisted(const ImageAccessRules *rules, const char *repository) {
        const json_t *pattern;
        size_t i;

        json_array_foreach(rules->allowlist, i, pattern)
                if (json_is_string(pattern) &&
                    matches_repository_pattern(repository, json_string_value(pattern)))
                        return true;
        return false;
}

const json_t *image_access_find(const json_t *access, const char *repository) {
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

static bool has_string(const json_t *array, const char *text) {
        const json_t *item;
        size_t i;

        json_array_foreach(array, i, item)
                if (streq_ptr(json_string_value(item), text))
                        return true;
        return false;
}

bool image_access_is_recorded(const json_t *entry, const json_t *hashes) {
        const json_t *secrets = json_object_get(entry, "secrets"), *hash;
        size_t i;

        if (json_is_true(json_object_get(entry, "node")))
                return true;
        json_array_foreach(hashes, i, hash)
                if (json_is_string(hash) && has_string(secrets, json_string_value(hash)))
                        return true;
        return false;
}
