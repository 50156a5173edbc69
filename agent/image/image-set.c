/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/image/image-set.h"

#include "agent/image/image-record.h"
#include "common/cleanup.h"
#include "common/image-reference.h"

/* Where the name is, or belongs. */
static size_t find_image_place(const ImageSet *set, const char *name, bool *ret_is_there) {
        size_t low = 0, high = set->n;

        *ret_is_there = false;
        while (low < high) {
                size_t middle = low + (high - low) / 2;
                int c = strcmp(set->names[middle], name);

                *ret_is_there = c == 0;
                if (c == 0)
                        return middle;
                if (c < 0)
                        low = middle + 1;
                else
                        high = middle;
        }
        return low;
}

static int make_room(ImageSet *set) {
        size_t room = set->room ? set->room * 2 : 16;
        char **larger;

        if (set->n < set->room)
                return 0;
        larger = reallocarray(set->names, room, sizeof(*larger));
        if (!larger)
                return -ENOMEM;
        set->names = larger;
        set->room = room;
        return 0;
}

static int add_normal_image(ImageSet *set, const char *name) {
        bool is_there;
        size_t i = find_image_place(set, name, &is_there);
        char *copy;

        if (is_there)
                return 0;
        copy = make_room(set) < 0 ? NULL : strdup(name);
        if (!copy)
                return -ENOMEM;
        memmove(set->names + i + 1, set->names + i, (set->n - i) * sizeof(*set->names));
        set->names[i] = copy;
        set->n++;
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
        bool is_there;

        (void) find_image_place(set, name, &is_there);
        return is_there || set->is_everything;
}

void image_set_done(ImageSet *set) {
        for (size_t i = 0; i < set->n; i++)
                free(set->names[i]);
        free(set->names);
        *set = IMAGE_SET_NULL;
}
