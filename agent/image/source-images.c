/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image/source-images.h"

#include "agent/image/image-record.h"
#include "common/array.h"
#include "common/cleanup.h"
#include "common/file.h"
#include "common/json-text.h"

#include <fcntl.h>

#define IMAGES_BYTES_MAX (2 * MIB)

void source_images_done(SourceImages *images) {
        for (size_t i = 0; i < images->images.n; i++) {
                free(images->images.items[i].name);
                free(images->images.items[i].digest);
        }
        free(images->images.items);
        free(images->directory);
        free(images->fleet);
        *images = (SourceImages){ 0 };
}

static int compare_source_images(const void *a, const void *b) {
        return strcmp(((const SourceImage *) a)->name, ((const SourceImage *) b)->name);
}

static int take_source_image(const json_t *json, SourceImage *ret) {
        const char *name = json_text(json, "name"), *digest = json_text(json, "digest");

        if (!name || (digest && !image_digest_is_valid(digest)))
                return -EBADMSG;
        ret->bytes = (uint64_t) json_integer_value(json_object_get(json, "bytes"));
        ret->name = strdup(name);
        ret->digest = digest ? strdup(digest) : NULL;
        return !ret->name || (digest && !ret->digest) ? -ENOMEM : 0;
}

static int take_source_images(const json_t *json, SourceImages *images) {
        const json_t *list = json_object_get(json, "images"), *item;
        const char *fleet = json_text(json, "fleet");
        size_t i;

        if (!fleet || !json_is_array(list))
                return -EBADMSG;
        images->fleet = strdup(fleet);
        images->images.items = calloc(json_array_size(list) + 1, sizeof(*images->images.items));
        if (!images->fleet || !images->images.items)
                return -ENOMEM;
        json_array_foreach(list, i, item) {
                int r = take_source_image(item, &images->images.items[images->images.n++]);

                if (r < 0)
                        return r;
        }
        qsort(images->images.items, images->images.n, sizeof(*images->images.items),
              compare_source_images);
        return 0;
}

int source_images_load(const char *directory, SourceImages *ret) {
        cleanup_with(source_images_done) SourceImages images = { .directory = strdup(directory) };
        cleanup_free char *path = path_join(directory, "images.json"), *text = NULL;
        cleanup_json json_t *json = NULL;
        size_t length = 0;
        int r = path && images.directory
                        ? read_file_at(AT_FDCWD, path, IMAGES_BYTES_MAX, &text, &length)
                        : -ENOMEM;

        *ret = (SourceImages){ 0 };
        if (r < 0)
                return r == -ENOENT ? 0 : r;
        r = json_parse_text(text, length, JSON_REJECT_DUPLICATES, &json, NULL);
        if (r >= 0)
                r = take_source_images(json, &images);
        if (r < 0)
                return r == -ENOMEM ? r : -EBADMSG;
        *ret = images;
        images = (SourceImages){ 0 };
        return 0;
}

static int compare_source_image_name(const char *name, const SourceImage *image) {
        return strcmp(name, image->name);
}

const SourceImage *source_images_find(const SourceImages *images, const char *reference) {
        return ARRAY_FIND(reference, images->images.items, images->images.n,
                          compare_source_image_name);
}

bool source_images_have_digest(const SourceImages *images, const char *digest) {
        for (size_t i = 0; i < images->images.n; i++)
                if (streq_ptr(images->images.items[i].digest, digest))
                        return true;
        return false;
}
