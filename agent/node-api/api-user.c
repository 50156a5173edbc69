/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/node-api/api-user.h"

#include "common/strv.h"

#include "common/cleanup.h"

#include <errno.h>

int api_user_copy(const ApiUser *from, ApiUser *ret) {
        cleanup_with(api_user_done) ApiUser user = { 0 };

        user.name = strdup(from->name);
        user.uid = from->uid ? strdup(from->uid) : NULL;
        user.extra = from->extra ? strdup(from->extra) : NULL;
        if (!user.name || (from->uid && !user.uid) || (from->extra && !user.extra) ||
            strv_extend(&user.groups, from->groups) < 0)
                return -ENOMEM;
        *ret = user;
        user = (ApiUser){ 0 };
        return 0;
}

void api_user_done(ApiUser *user) {
        free(user->name);
        free(user->uid);
        strv_free(user->groups);
        free(user->extra);
        *user = (ApiUser){ 0 };
}
