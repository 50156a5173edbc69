/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Reads the record that mainstay-image wrote about an unpacked image. */

#include "agent/model/image.h"
#include "common/error.h"

#include <stdint.h>

/* Reads records/<digest>.json below 'images_fd', whose path is 'images_path', and checks that all
 * layers of the image exist. 0 with a new Image with the name 'reference'; -ENOENT if the image is
 * incomplete (a damaged record is set aside); -ENOMEM, -EMFILE, -EIO, … for causes other than the
 * image. */
int image_record_load(int images_fd, const char *images_path, const char *reference,
                      const char *digest, Image **ret, Error *reterr);

enum {
        RECORD_PATH_SIZE = 96
};

/* "records/<hex>.json" of a valid digest; or -EINVAL. */
int image_record_path(const char *digest, char ret[static RECORD_PATH_SIZE]);

/* Whether it is "sha256:" and 64 lower-case hex digits, and can therefore become part of a file
 * name. */
bool image_digest_is_valid(const char *digest);

/* The compressed size of the image in a record; 0 if unknown. */
uint64_t image_record_size(int images_fd, const char *digest);
