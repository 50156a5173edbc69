/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What an image's /etc/passwd and /etc/group say of a user: asked where a pod names a user that is
 * not the image's own. */

#include "agent/model/image.h"

/* The primary group of the user, and those in which /etc/group lists it. A user that the image does
 * not know has group 0 and no other. 0 or -ENOMEM. The caller frees the groups. */
int image_find_user_groups(const Image *image, uid_t uid, gid_t *ret_gid, gid_t **ret_groups,
                           size_t *ret_n_groups);
