/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* TokenReview and SubjectAccessReview as JSON. Pure. */

#include "agent/model/api-user.h"
#include "common/error.h"

/* The request. The caller frees it; NULL: out of memory. */
char *token_review_format(const char *token);

/* The user in a response. 1; 0: the token does not belong to a user; -EBADMSG with a message. */
int token_review_parse(const char *json, ApiUser *ret, Error *reterr);

/* A review of whether the user may do this with a subresource of the node. The caller frees it;
 * NULL: out of memory. */
char *access_review_format(const ApiUser *user, const char *verb, const char *node,
                           const char *subresource);

/* 1: allowed; 0: denied; -EBADMSG with a message. */
int access_review_parse(const char *json, Error *reterr);
