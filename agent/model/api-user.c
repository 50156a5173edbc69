/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/model/api-user.h"

#include "common/strv.h"

#include "common/cleanup.h"
#include "common/json-text.h"

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

json_t *api_user_to_json(const ApiUser *user) {
        cleanup_json json_t *groups = json_array(), *extra = NULL;

        strv_foreach(group, user->groups) {
                if (json_array_append_new(groups, json_string(*group)) < 0)
                        return NULL;
        }
        if (user->extra && !(extra = json_loads(user->extra, 0, NULL)))
                return NULL;
        return json_pack("{s:s, s:s*, s:O, s:O*}", "username", user->name, "uid", user->uid,
                         "groups", groups, "extra", extra);
}

int api_user_from_json(const json_t *object, ApiUser *ret) {
        cleanup_with(api_user_done) ApiUser user = { 0 };
        const char *name = json_text(object, "username");
        const char *uid = json_text(object, "uid");
        const json_t *extra = json_object_get(object, "extra"), *group;
        size_t i;

        if (!name || !name[0])
                return -EACCES;
        user.name = strdup(name);
        user.uid = uid ? strdup(uid) : NULL;
        user.extra = json_object_size(extra) > 0
                             ? json_to_text(extra, JSON_COMPACT | JSON_SORT_KEYS)
                             : NULL;
        if (!user.name || (uid && !user.uid) || (json_object_size(extra) > 0 && !user.extra))
                return -ENOMEM;
        json_array_foreach(json_object_get(object, "groups"), i, group)
                if (json_is_string(group) &&
                    strv_append(&user.groups, json_string_value(group)) < 0)
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
