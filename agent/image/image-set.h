/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A set of images, each by normalised reference or by digest, for image garbage collection. If
 * memory is insufficient, it contains all images. */

#include <stdbool.h>
#include <stddef.h>

typedef struct ImageSet {
        char **names; /* sorted */
        size_t n;
        bool is_everything;
} ImageSet;

#define IMAGE_SET_NULL ((ImageSet){ 0 })

/* Adds a digest, or an image by its reference in a manifest; an invalid or missing reference adds
 * nothing. */
void image_set_add(ImageSet *set, const char *reference);

/* 'name' is a normalised reference or a digest. */
bool image_set_contains(const ImageSet *set, const char *name);

void image_set_done(ImageSet *set);
