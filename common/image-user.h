/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Resolves the user of a container with the /etc/passwd and /etc/group of its image, as containerd
 * does. Both files are untrusted. */

#include "common/error.h"
#include "common/layer-view.h"

#include <stdint.h>

#include <sys/types.h>

typedef struct ImageUser {
        uid_t uid;
        gid_t gid;
        gid_t *groups; /* supplementary */
        size_t n_groups;
} ImageUser;

/* 'user' is "", NULL, "name", "uid", each optionally with ":group" or ":gid". 'passwd' and 'group'
 * are the texts of the two files, NULL if missing. A number is an ID and needs no entry; a UID
 * without an entry gets group 0. The supplementary groups are those that list the user's name,
 * except a group with the same name. -EINVAL with a message for an unknown name and for a number
 * beyond 2^31-1, -E2BIG with a message for a user in more than 4096 groups. */
int image_user_find(const char *user, const char *passwd, const char *group, ImageUser *ret,
                    Error *reterr);

/* The same with the files of an image. Links are resolved within the image. Also -EINVAL with a
 * message if a file cannot be read because it is not a regular file, there is a loop of links, or
 * it is larger than a MiB. */
int image_user_find_in_layers(const char *user, const LayerView *view, ImageUser *ret,
                              Error *reterr);

/* The same with the directories of the layers, topmost first. */
int image_user_find_in_directories(const char *user, char *const *layers, ImageUser *ret,
                                   Error *reterr);

void image_user_done(ImageUser *account);
#define cleanup_image_user cleanup_with(image_user_done)
