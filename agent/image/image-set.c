/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image/image-set.h"

#include "agent/image/image-record.h"
#include "common/array.h"
#include "common/cleanup.h"
#include "common/image-reference.h"

static int compare_image_name(const char *name, char *const *other) {
        return strcmp(name, *other);
}

static int add_normal_image(ImageSet *set, const char *name) {
        size_t i = ARRAY_FIND_PLACE(name, set->names, set->n, compare_image_name);
        cleanup_free char *copy = NULL;
        char **place;

        if (i < set->n && streq(set->names[i], name))
                return 0;
        copy = strdup(name);
        place = copy ? ARRAY_INSERT(set->names, set->n, i) : NULL;
        if (!place)
                return -ENOMEM;
        *place = TAKE_PTR(copy);
        return 0;
}

void image_set_add(ImageSet *set, const char *reference) {
        cleanup_free char *normal = NULL;
        int r = 0;

        if (set->is_everything || !reference)
                return;
        if (!image_digest_is_valid(reference))
                r = image_reference_normalise(reference, &normal, NULL);
        if (r >= 0)
                r = add_normal_image(set, normal ? normal : reference);
        set->is_everything = r == -ENOMEM;
}

bool image_set_contains(const ImageSet *set, const char *name) {
        return set->is_everything || ARRAY_FIND(name, set->names, set->n, compare_image_name);
}

void image_set_done(ImageSet *set) {
        for (size_t i = 0; i < set->n; i++)
                free(set->names[i]);
        free(set->names);
        *set = IMAGE_SET_NULL;
}
