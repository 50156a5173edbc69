/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/node-api/access/self-reviews.h"

#include "agent/node-api/kubernetes/served-resources.h"
#include "common/cleanup.h"
#include "common/json-text.h"
#include "common/strv.h"
#include "common/text.h"

static bool has_word(const char *const *words, const char *word) {
        return words && text_is_one_of(word, words);
}

static bool is_served_attribute(const json_t *attributes) {
        const char *group = strna(json_text(attributes, "group"));
        const char *plural = strna(json_text(attributes, "resource"));
        const char *subresource = json_text(attributes, "subresource");
        const char *verb = strna(json_text(attributes, "verb"));

        for (size_t i = 0; i < n_served_resources; i++)
                if (streq(served_resources[i].group, group) &&
                    streq(served_resources[i].plural, plural) &&
                    has_word(served_verbs(&served_resources[i],
                                          subresource && *subresource ? subresource : NULL),
                             verb))
                        return true;
        return false;
}

static json_t *review_status(const json_t *spec) {
        const json_t *attributes = json_object_get(spec, "resourceAttributes");
        bool is_allowed =
                attributes ? is_served_attribute(attributes)
                           : streq(strna(json_text(spec, "nonResourceAttributes", "verb")), "get");

        return is_allowed ? json_pack("{s:b}", "allowed", 1)
                          : json_pack("{s:b, s:s}", "allowed", 0, "reason",
                                      "this node is without an API server: its objects are files");
}

static json_t *list_rule_words(const char *const *words) {
        json_t *list = json_array();

        for (; words && *words; words++)
                (void) json_array_append_new(list, json_string(*words));
        return list;
}

static json_t *format_rule(const ServedResource *resource, const char *subresource) {
        return json_pack("{s:o, s:[s], s:[s++]}", "verbs",
                         list_rule_words(served_verbs(resource, subresource)), "apiGroups",
                         resource->group, "resources", resource->plural, subresource ? "/" : "",
                         strna(subresource));
}

static json_t *rules_status(void) {
        json_t *rules = json_array();

        for (size_t i = 0; i < n_served_resources; i++) {
                const ServedResource *resource = &served_resources[i];

                (void) json_array_append_new(rules, format_rule(resource, NULL));
                for (const char *const *name = resource->subresources; name && *name; name++)
                        (void) json_array_append_new(rules, format_rule(resource, *name));
        }
        return json_pack("{s:o, s:[{s:[s], s:[s]}], s:b}", "resourceRules", rules,
                         "nonResourceRules", "verbs", "get", "nonResourceURLs", "*", "incomplete",
                         0);
}

static json_t *user_status(const ApiUser *user) {
        json_t *groups = json_array();

        strv_foreach(group, user->groups) {
                (void) json_array_append_new(groups, json_string(*group));
        }
        return json_pack("{s:{s:s, s:s*, s:o, s:o*}}", "userInfo", "username", strna(user->name),
                         "uid", user->uid, "groups", groups, "extra",
                         user->extra ? json_loads(user->extra, 0, NULL) : NULL);
}

static json_t *format_review(const char *kind, const char *version, const json_t *spec,
                             json_t *status_consume) {
        return json_pack("{s:s, s:s, s:{}, s:O*, s:o}", "kind", kind, "apiVersion", version,
                         "metadata", "spec", spec, "status", status_consume);
}

json_t *self_review_reply(const char *group, const char *resource, const ApiUser *user,
                          const json_t *review) {
        const json_t *spec = json_object_get(review, "spec");

        if (streq(group, "authorization.k8s.io") && streq(resource, "selfsubjectaccessreviews"))
                return format_review("SelfSubjectAccessReview", "authorization.k8s.io/v1", spec,
                                     review_status(spec));
        if (streq(group, "authorization.k8s.io") && streq(resource, "selfsubjectrulesreviews"))
                return format_review("SelfSubjectRulesReview", "authorization.k8s.io/v1", spec,
                                     rules_status());
        if (streq(group, "authentication.k8s.io") && streq(resource, "selfsubjectreviews"))
                return format_review("SelfSubjectReview", "authentication.k8s.io/v1", NULL,
                                     user_status(user));
        return NULL;
}
