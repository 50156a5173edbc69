/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The names of unpacked images, which stay when the archives that contained the images are removed.
 * On disk they are annotations in the store's index.json, which mainstay-image writes. */

#include "common/macros.h"

typedef struct ImageName {
        char *name;   /* normalised reference */
        char *digest; /* digest of the image */
} ImageName;

typedef struct ImageNames {
        ImageName *names;
        size_t n_names;
} ImageNames;

/* Reads index.json. An unreadable one yields no names. */
void image_names_load(ImageNames *image_names, int images_fd);

/* The digest of the image that has this name, or NULL. */
const char *image_names_find(const ImageNames *image_names, const char *name);

/* Gives a name to an image, and removes it from any other one. 0 or -ENOMEM. */
int image_names_set(ImageNames *image_names, const char *name, const char *digest);

/* Removes all names from an image. */
void image_names_remove_image(ImageNames *image_names, const char *digest);

void image_names_done(ImageNames *image_names);
