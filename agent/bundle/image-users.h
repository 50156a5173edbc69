/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The user of a container in the image's /etc/passwd and /etc/group: needed where a pod sets a user
 * (runAsUser) that is not the image's own. */

#include "agent/model/image.h"

/* The primary group of the user, and the groups in which /etc/group lists it. A user that the image
 * does not define has group 0 only. 0 or -ENOMEM. The caller frees the groups. */
int image_find_user_groups(const Image *image, uid_t uid, gid_t *ret_gid, gid_t **ret_groups,
                           size_t *ret_n_groups);
