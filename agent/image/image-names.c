/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image/image-names.h"

#include "common/array.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/image-access.h"
#include "common/image-reference.h"
#include "common/json-text.h"

enum {
        INDEX_BYTES_MAX = 4 * 1024 * 1024
};

static ImageName *find_image_name(const ImageNames *image_names, const char *name) {
        for (size_t i = 0; i < image_names->n_names; i++)
                if (streq(image_names->names[i].name, name))
                        return &image_names->names[i];
        return NULL;
}

const char *image_names_find(const ImageNames *image_names, const char *name) {
        const ImageName *existing = find_image_name(image_names, name);

        return existing ? existing->digest : NULL;
}

int image_names_set(ImageNames *image_names, const char *name, const char *digest) {
        cleanup_free char *name_copy = strdup(name), *digest_copy = strdup(digest);
        ImageName *existing = find_image_name(image_names, name);

        if (!name_copy || !digest_copy)
                return -ENOMEM;
        if (existing) {
                free(existing->digest);
                existing->digest = TAKE_PTR(digest_copy);
                return 0;
        }
        if (!ARRAY_RESERVE(image_names->names, image_names->n_names, 1))
                return -ENOMEM;
        image_names->names[image_names->n_names++] =
                (ImageName){ TAKE_PTR(name_copy), TAKE_PTR(digest_copy) };
        return 0;
}

/* The image of a signed index has the name from the index. */
static bool is_name_of_index(const char *name) {
        return strncmp(name, IMAGE_NAME_OF_INDEX, strlen(IMAGE_NAME_OF_INDEX)) == 0;
}

/* A name that an earlier version spelled differently ("LOCALHOST:5000/app:1") is replaced by the
 * current spelling. A name that is invalid today is kept, so that its image is listed and
 * garbage-collected. */
static int load_image_name(ImageNames *image_names, const char *name, const char *digest) {
        cleanup_free char *normal = NULL;
        int r = image_reference_normalise(name, &normal, NULL);

        if (r == -ENOMEM)
                return r;
        if (r < 0 || streq(name, normal))
                return image_names_set(image_names, name, digest);
        return find_image_name(image_names, normal) ? 0
                                                    : image_names_set(image_names, normal, digest);
}

void image_names_load(ImageNames *image_names, int images_fd) {
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
                const char *digest = json_text(annotations, "mainstay.image.digest");

                if (name && digest && !is_name_of_index(name) &&
                    load_image_name(image_names, name, digest) < 0)
                        return;
        }
}

void image_names_remove_image(ImageNames *image_names, const char *digest) {
        for (size_t i = image_names->n_names; i-- > 0;) {
                if (!streq(image_names->names[i].digest, digest))
                        continue;
                free(image_names->names[i].name);
                free(image_names->names[i].digest);
                image_names->names[i] = image_names->names[--image_names->n_names];
        }
}

void image_names_done(ImageNames *image_names) {
        for (size_t i = 0; i < image_names->n_names; i++) {
                free(image_names->names[i].name);
                free(image_names->names[i].digest);
        }
        free(image_names->names);
        *image_names = (ImageNames){ 0 };
}
