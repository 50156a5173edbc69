/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/node-api/api-user.h"

#include "common/strv.h"

#include <stdlib.h>

void api_user_done(ApiUser *user) {
        free(user->name);
        free(user->uid);
        strv_free(user->groups);
        *user = (ApiUser){ 0 };
}
