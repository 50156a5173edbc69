/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A set of images, each by its normalised reference or by its digest, for image garbage collection:
 * if memory is insufficient it is the set of all images. */

#include <stdbool.h>
#include <stddef.h>

typedef struct ImageSet {
        char **names; /* sorted */
        size_t n;
        bool is_everything;
} ImageSet;

#define IMAGE_SET_NULL ((ImageSet){ 0 })

/* Adds a digest, or an image by a reference as a manifest has it; an invalid or missing one names
 * no image. */
void image_set_add(ImageSet *set, const char *reference);

/* 'name' is normal, or a digest. */
bool image_set_contains(const ImageSet *set, const char *name);

void image_set_done(ImageSet *set);
