/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/model/image.h"

#include "common/strv.h"

#include <stdlib.h>

Image *image_ref(Image *image) {
        image->n_refs++;
        return image;
}

Image *image_unref(Image *image) {
        if (!image || --image->n_refs > 0)
                return NULL;
        free(image->reference);
        free(image->digest);
        strv_free(image->layers);
        strv_free(image->entrypoint);
        strv_free(image->command);
        strv_free(image->env);
        strv_free(image->volumes);
        free(image->working_dir);
        free(image->stop_signal);
        free(image->user);
        free(image->user_error);
        free(image->groups);
        free(image);
        return NULL;
}
