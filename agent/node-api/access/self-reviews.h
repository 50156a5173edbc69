/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Reviews that clients request about themselves: SelfSubjectAccessReview (kubectl auth can-i),
 * SelfSubjectRulesReview and SelfSubjectReview (whoami). On a lone node, users may do everything
 * that the node supports; everything else is denied with a reason. Pure. */

#include "agent/model/api-user.h"

#include <jansson.h>

/* The reply to a review of this group and resource; NULL: there is no such review, or out of
 * memory. */
json_t *self_review_reply(const char *group, const char *resource, const ApiUser *user,
                          const json_t *review);
