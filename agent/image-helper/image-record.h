/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The record of an unpacked image: what it takes to run it, as JSON. */

#include "agent/image-helper/catalog.h"
#include "agent/image-helper/image-user.h"

/* 'chain_ids' are the image's, lowest first. 'user_error' says why the user is unknown, or is NULL.
 * 0 with memory that the caller frees, or -ENOMEM. */
int image_record_format(const CatalogImage *image, char (*chain_ids)[DIGEST_SIZE],
                        const ImageUser *account, const char *user_error, char **ret);
