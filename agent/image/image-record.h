/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What mainstay-image wrote of an unpacked image, read back. */

#include "agent/model/image.h"
#include "common/error.h"

#include <stdint.h>

/* Reads records/<digest>.json below 'images_fd', whose path is 'images_path', and looks whether all
 * of the image's layers are there. 0 with a new Image that goes by 'reference'; -ENOENT where the
 * image is not there whole (a damaged record is set aside); -ENOEXEC with the sentence for one that
 * cannot be run because its user is unknown. */
int image_record_load(int images_fd, const char *images_path, const char *reference,
                      const char *digest, Image **ret, Error *reterr);

enum {
        RECORD_PATH_SIZE = 96
};

/* "records/<hex>.json" of a valid digest; or -EINVAL. */
int image_record_path(const char *digest, char ret[static RECORD_PATH_SIZE]);

/* "sha256:" and 64 lower-case hex digits: what may become part of a file name. */
bool image_digest_is_valid(const char *digest);

/* The size that a record tells of its image, packed; 0 where it tells none. */
uint64_t image_record_size(int images_fd, const char *digest);
