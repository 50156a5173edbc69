/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/node-api/review-objects.h"

#include "common/cleanup.h"
#include "common/json-text.h"
#include "common/strv.h"

char *token_review_format(const char *token) {
        cleanup_json json_t *review =
                json_pack("{s:s, s:s, s:{s:s}}", "kind", "TokenReview", "apiVersion",
                          "authentication.k8s.io/v1", "spec", "token", token);

        return review ? json_to_text(review, JSON_COMPACT) : NULL;
}

/* The agent says so where the API server did not review it. */
static int check_review_error(const json_t *review, Error *reterr) {
        const char *message = json_string_value(json_object_get(review, "error"));

        return message ? error_setf(reterr, EBADMSG, "%s", message) : 0;
}

static int copy_review_user(const json_t *object, ApiUser *ret, Error *reterr) {
        cleanup_with(api_user_done) ApiUser user = { 0 };
        const char *name = json_string_value(json_object_get(object, "username"));
        const char *uid = json_string_value(json_object_get(object, "uid"));
        const json_t *group;
        size_t i;

        if (!name || !name[0])
                return error_setf(reterr, EBADMSG, "the API server's TokenReview names no user");
        user.name = strdup(name);
        user.uid = uid ? strdup(uid) : NULL;
        if (!user.name || (uid && !user.uid))
                return -ENOMEM;
        json_array_foreach(json_object_get(object, "groups"), i, group)
                if (json_is_string(group) &&
                    strv_append(&user.groups, json_string_value(group)) < 0)
                        return -ENOMEM;
        *ret = user;
        user = (ApiUser){ 0 };
        return 1;
}

int token_review_parse(const char *json, ApiUser *ret, Error *reterr) {
        cleanup_json json_t *review = json_loads(json, 0, NULL);
        const json_t *status = json_object_get(review, "status");

        if (check_review_error(review, reterr) < 0)
                return -EBADMSG;
        if (!json_is_object(status))
                return error_setf(reterr, EBADMSG, "the API server's reply is not a TokenReview");
        if (!json_is_true(json_object_get(status, "authenticated")))
                return 0;
        return copy_review_user(json_object_get(status, "user"), ret, reterr);
}

char *access_review_format(const ApiUser *user, const char *verb, const char *node,
                           const char *subresource) {
        cleanup_json json_t *groups = json_array(), *review = NULL;

        strv_foreach(group, user->groups) {
                if (json_array_append_new(groups, json_string(*group)) < 0)
                        return NULL;
        }
        review = json_pack("{s:s, s:s, s:{s:s, s:s*, s:O, s:{s:s, s:s, s:s, s:s, s:s}}}", "kind",
                           "SubjectAccessReview", "apiVersion", "authorization.k8s.io/v1", "spec",
                           "user", user->name, "uid", user->uid, "groups", groups,
                           "resourceAttributes", "verb", verb, "version", "v1", "resource", "nodes",
                           "subresource", subresource, "name", node);
        return review ? json_to_text(review, JSON_COMPACT) : NULL;
}

int access_review_parse(const char *json, Error *reterr) {
        cleanup_json json_t *review = json_loads(json, 0, NULL);
        const json_t *status = json_object_get(review, "status");

        if (check_review_error(review, reterr) < 0)
                return -EBADMSG;
        if (!json_is_object(status))
                return error_setf(reterr, EBADMSG,
                                  "the API server's reply is not a SubjectAccessReview");
        return json_is_true(json_object_get(status, "allowed"));
}
