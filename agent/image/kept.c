/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image/kept.h"

#include "common/cleanup.h"
#include "common/file.h"

#include <jansson.h>

enum {
        INDEX_BYTES_MAX = 4 * 1024 * 1024
};

#define cleanup_json cleanup_with(json_decrefp)

static KeptName *find(const KeptNames *kept, const char *name) {
        for (size_t i = 0; i < kept->n_names; i++)
                if (streq(kept->names[i].name, name))
                        return &kept->names[i];
        return NULL;
}

const char *kept_find(const KeptNames *kept, const char *name) {
        const KeptName *there = find(kept, name);

        return there ? there->digest : NULL;
}

int kept_set(KeptNames *kept, const char *name, const char *digest) {
        cleanup_free char *name_copy = strdup(name), *digest_copy = strdup(digest);
        KeptName *there = find(kept, name), *larger;

        if (!name_copy || !digest_copy)
                return -ENOMEM;
        if (there) {
                free(there->digest);
                there->digest = TAKE_PTR(digest_copy);
                return 0;
        }
        larger = reallocarray(kept->names, kept->n_names + 1, sizeof(*larger));
        if (!larger)
                return -ENOMEM;
        kept->names = larger;
        larger[kept->n_names++] = (KeptName){ TAKE_PTR(name_copy), TAKE_PTR(digest_copy) };
        return 0;
}

void kept_load(KeptNames *kept, int images_fd) {
        cleanup_free char *text = NULL;
        cleanup_json json_t *index = NULL;
        const json_t *descriptor;
        size_t i;

        if (read_file_at(images_fd, "index.json", INDEX_BYTES_MAX, &text, NULL) >= 0)
                index = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
        json_array_foreach(json_object_get(index, "manifests"), i, descriptor) {
                const json_t *annotations = json_object_get(descriptor, "annotations");
                const char *name = json_string_value(
                        json_object_get(annotations, "org.opencontainers.image.ref.name"));
                const char *digest =
                        json_string_value(json_object_get(annotations, "mainstay.image.digest"));

                if (name && digest && kept_set(kept, name, digest) < 0)
                        return;
        }
}

void kept_forget(KeptNames *kept, const char *digest) {
        for (size_t i = kept->n_names; i-- > 0;) {
                if (!streq(kept->names[i].digest, digest))
                        continue;
                free(kept->names[i].name);
                free(kept->names[i].digest);
                kept->names[i] = kept->names[--kept->n_names];
        }
}

void kept_done(KeptNames *kept) {
        for (size_t i = 0; i < kept->n_names; i++) {
                free(kept->names[i].name);
                free(kept->names[i].digest);
        }
        free(kept->names);
        *kept = (KeptNames){ 0 };
}
