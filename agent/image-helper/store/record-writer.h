/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Writes the record of an unpacked image: the data that is needed to run it, as JSON. The agent
 * reads it through agent/image/image-record.h. */

#include "agent/image-helper/archive/catalog.h"
#include "common/image-user.h"

/* 'chain_ids' are the image's, lowest first. 'user_error' is the reason why the user is unknown, or
 * NULL. 0, and the caller frees the result; or -ENOMEM. */
int image_record_format(const CatalogImage *image, char (*chain_ids)[DIGEST_SIZE],
                        const ImageUser *account, const char *user_error, char **ret);
