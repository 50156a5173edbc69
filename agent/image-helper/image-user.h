/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Resolves the USER of an image with the image's own /etc/passwd and /etc/group, as Docker does. */

#include "agent/image-helper/layer-view.h"
#include "common/error.h"

#include <stdint.h>

#include <sys/types.h>

typedef struct ImageUser {
        uid_t uid;
        gid_t gid;
        gid_t *groups; /* supplementary */
        size_t n_groups;
} ImageUser;

/* 'user' is "", NULL, "name", "uid", each optionally with ":group" or ":gid". 'passwd' and 'group'
 * are the texts of the two files, NULL if missing. Numbers need no entry; a UID without an entry
 * gets group 0. With an explicit group there are no supplementary ones. -EINVAL with a message for
 * an unknown name and for a number beyond 2^31-1. */
int image_user_find(const char *user, const char *passwd, const char *group, ImageUser *ret,
                    Error *reterr);

/* The same with the files of an image. A file that is not regular, or is larger than a MiB, counts
 * as missing. */
int image_user_find_in_layers(const char *user, const LayerView *view, ImageUser *ret,
                              Error *reterr);

void image_user_done(ImageUser *account);
