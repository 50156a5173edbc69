/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The names of the images that the store has unpacked, which outlive the archives they came from.
 * On disk they are annotations of the store's index.json, which mainstay-image writes. */

#include "common/macros.h"

typedef struct KeptName {
        char *name;   /* normalised reference */
        char *digest; /* of the image */
} KeptName;

typedef struct KeptNames {
        KeptName *names;
        size_t n_names;
} KeptNames;

/* Reads index.json. What cannot be read has no names. */
void kept_load(KeptNames *kept, int images_fd);

/* The digest of the image that has this name, or NULL. */
const char *kept_find(const KeptNames *kept, const char *name);

/* Gives a name to an image, and takes it from another that has it. 0 or -ENOMEM. */
int kept_set(KeptNames *kept, const char *name, const char *digest);

/* Takes all names from an image. */
void kept_forget(KeptNames *kept, const char *digest);

void kept_done(KeptNames *kept);
