/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Runs mainstay-image, which parses images. */

#include "common/error.h"

enum {
        IMAGE_HELPER_ABSENT = 66 /* exit status of "collect": there is no image with that name */
};

typedef struct ImageHelperRun {
        const char *verb;
        const char *store;
        const char *const *words; /* further arguments; NULL among them are skipped */
        size_t n_words;
        int input, output, error; /* borrowed; negative or 0: mainstay's own */
} ImageHelperRun;

/* Waits until it ends. Returns its exit status, or -errno. */
int image_helper_run(const ImageHelperRun *run);
