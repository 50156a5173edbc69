/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/access/review-objects.h"

#include "common/cleanup.h"
#include "common/json-text.h"
#include "common/strv.h"

#include <stdint.h>

char *token_review_format(const char *token) {
        cleanup_json json_t *review =
                json_pack("{s:s, s:s, s:{s:s}}", "kind", "TokenReview", "apiVersion",
                          "authentication.k8s.io/v1", "spec", "token", token);

        return review ? json_to_text(review, JSON_COMPACT) : NULL;
}

/* The agent reports this if the API server did not perform the review. */
static int check_review_error(const json_t *review, Error *reterr) {
        const char *message = json_text(review, "error");

        return message ? error_setf(reterr, EBADMSG, "%s", message) : 0;
}

/* The API server refuses a review of access in which a value is not a list of strings. */
static json_t *copy_extra_values(const json_t *values) {
        json_t *copy = json_array();
        const json_t *value;
        size_t i;

        json_array_foreach(values, i, value)
                if (json_is_string(value))
                        (void) json_array_append_new(copy, json_string(json_string_value(value)));
        return copy;
}

/* Extra values, such as the scopes of a token, by which an authorizer may restrict the user's
 * rights. */
static int copy_review_extra(const json_t *object, char **ret) {
        cleanup_json json_t *copy = json_object();
        const char *name;
        json_t *values;

        json_object_foreach((json_t *) (uintptr_t) object, name, values)
                if (json_object_set_new(copy, name, copy_extra_values(values)) < 0)
                        return -ENOMEM;
        if (json_object_size(copy) == 0)
                return 0;
        *ret = json_to_text(copy, JSON_COMPACT | JSON_SORT_KEYS);
        return *ret ? 0 : -ENOMEM;
}

static int copy_review_user(const json_t *object, ApiUser *ret, Error *reterr) {
        cleanup_with(api_user_done) ApiUser user = { 0 };
        int r = api_user_from_json(object, &user);

        if (r == -EACCES)
                return error_setf(reterr, EBADMSG, "the API server's TokenReview names no user");
        if (r < 0)
                return r;
        free(TAKE_PTR(user.extra));
        r = copy_review_extra(json_object_get(object, "extra"), &user.extra);
        if (r < 0)
                return r;
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
        cleanup_json json_t *known = api_user_to_json(user), *review = NULL;
        cleanup_json json_t *spec = json_pack("{s:s}", "user", user->name);

        /* In a TokenReview this member is called "username". */
        if (json_object_update(spec, known) < 0 || json_object_del(spec, "username") < 0 ||
            json_object_set_new(spec, "resourceAttributes",
                                json_pack("{s:s, s:s, s:s, s:s, s:s}", "verb", verb, "version",
                                          "v1", "resource", "nodes", "subresource", subresource,
                                          "name", node)) < 0)
                return NULL;
        review = json_pack("{s:s, s:s, s:O}", "kind", "SubjectAccessReview", "apiVersion",
                           "authorization.k8s.io/v1", "spec", spec);
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
