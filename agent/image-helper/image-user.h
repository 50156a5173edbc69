/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The USER of an image, looked up in the image's own /etc/passwd and /etc/group as Docker does. */

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

/* 'user' is "", NULL, "name", "uid", each with ":group" or ":gid" after it. 'passwd' and 'group'
 * are the texts of the two files, NULL where there is none. Numbers need no entry; without one the
 * group is 0. Who names a group gets no others. -EINVAL with the sentence for a name that nobody
 * has and for a number beyond 2^31-1. */
int image_user_find(const char *user, const char *passwd, const char *group, ImageUser *ret,
                    Error *reterr);

/* The same with the files of an image. A file that is no regular file, or larger than a MiB, counts
 * as missing. */
int image_user_find_in_layers(const char *user, const LayerView *view, ImageUser *ret,
                              Error *reterr);

void image_user_done(ImageUser *account);
