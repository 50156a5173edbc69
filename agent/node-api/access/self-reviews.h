/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Reviews that clients request about themselves: SelfSubjectAccessReview (kubectl auth can-i),
 * SelfSubjectRulesReview and SelfSubjectReview (whoami). A lone node lets its users do all that it
 * can do; the rest is not allowed, with the reason. Pure. */

#include "agent/model/api-user.h"

#include <jansson.h>

/* The reply to a review of the group and resource; NULL: there is no such review, or no memory. */
json_t *self_review_reply(const char *group, const char *resource, const ApiUser *user,
                          const json_t *review);
