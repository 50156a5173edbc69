/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* TokenReview and SubjectAccessReview as JSON. Pure. */

#include "agent/model/api-user.h"
#include "common/error.h"

/* The request. The caller frees it; NULL: out of memory. */
char *token_review_format(const char *token);

/* The user of a response. 1; 0: the token is none of a user; -EBADMSG with a message. */
int token_review_parse(const char *json, ApiUser *ret, Error *reterr);

/* May the user do this with a subresource of the node? The caller frees it; NULL: out of memory. */
char *access_review_format(const ApiUser *user, const char *verb, const char *node,
                           const char *subresource);

/* 1: allowed; 0: not; -EBADMSG with a message. */
int access_review_parse(const char *json, Error *reterr);
