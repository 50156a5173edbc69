/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The user who sends a request, as identified by a certificate or a TokenReview. */

#include "common/json-text.h"

typedef struct ApiUser {
        char *name;
        char *uid; /* NULL: unknown */
        char **groups;
        char *extra; /* a JSON object with lists of strings, as in TokenReviews; NULL: none */
} ApiUser;

/* 0 or -ENOMEM. */
int api_user_copy(const ApiUser *from, ApiUser *ret);
/* {"username", "uid", "groups", "extra"}, as in TokenReviews; NULL: out of memory. */
json_t *api_user_to_json(const ApiUser *user);

/* 0; -EACCES: it has no name; -ENOMEM. */
int api_user_from_json(const json_t *object, ApiUser *ret);
void api_user_done(ApiUser *user);
