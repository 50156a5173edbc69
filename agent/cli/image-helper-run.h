/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Runs mainstay-image, which parses images. */

#include "common/error.h"

enum {
        IMAGE_HELPER_ABSENT = 66 /* exit status of "collect": no image has the name there */
};

typedef struct ImageHelperRun {
        const char *verb;
        const char *store;
        const char *const *words; /* further arguments; NULL among them are skipped */
        size_t n_words;
        int input, output, error; /* borrowed; negative or 0: those of mainstay */
} ImageHelperRun;

/* Waits for its end. Its exit status, or -errno. */
int image_helper_run(const ImageHelperRun *run);
