/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The user that sends a request, as certificates and TokenReviews name it. */

#include "common/macros.h"

typedef struct ApiUser {
        char *name;
        char *uid; /* NULL: unknown */
        char **groups;
} ApiUser;

void api_user_done(ApiUser *user);
