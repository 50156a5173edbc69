/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image-helper/source/index-platforms.h"

#include "agent/image-helper/pull/platform.h"
#include "common/cleanup.h"
#include "common/json-text.h"

/* "linux/arm64/v8". A higher score is better; 0: not for this machine. */
static unsigned score_platform_name(const char *name) {
        cleanup_free char *copy = strdup(name);
        char *rest = copy;
        const char *os = copy ? strsep(&rest, "/") : NULL, *architecture = NULL;

        if (rest)
                architecture = strsep(&rest, "/");
        return platform_match_score(os, architecture, rest);
}

const SourceIndexPlatform *source_image_choose_platform(const SourceIndexImage *image) {
        const SourceIndexPlatform *chosen = NULL;
        unsigned best = 0;

        for (size_t i = 0; i < image->platforms.n; i++) {
                unsigned fit = score_platform_name(image->platforms.items[i].name);

                if (fit > best) {
                        chosen = &image->platforms.items[i];
                        best = fit;
                }
        }
        return chosen;
}

json_t *source_images_to_json(const SourceIndex *index) {
        json_t *images = json_array();

        for (size_t i = 0; i < index->images.n; i++) {
                const SourceIndexImage *image = &index->images.items[i];
                const SourceIndexPlatform *platform = source_image_choose_platform(image);
                json_t *item =
                        platform ? json_pack("{s:s, s:s, s:I}", "name", image->name, "digest",
                                             platform->manifest.digest, "bytes",
                                             (json_int_t) source_index_platform_bytes(platform))
                                 : json_pack("{s:s}", "name", image->name);

                if (json_array_append_new(images, item) < 0) {
                        json_decref(images);
                        return NULL;
                }
        }
        return json_pack("{s:s, s:o}", "fleet", index->fleet, "images", images);
}
