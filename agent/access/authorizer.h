/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Authenticates and authorizes the clients of mainstay-api, like the kubelet does. A client is
 * authenticated by the signer's ticket for its certificate or by its token (TokenReview), or is
 * anonymous; its user is authorized by a SubjectAccessReview. mainstay-api must request a decision
 * about each action, because it is not trusted. The API server's answers are cached. */

#include "agent/model/client-ticket.h"
#include "agent/model/request-attributes.h"

typedef struct Authorizer Authorizer;
typedef struct AccessCheck AccessCheck;

typedef enum AccessReviewKind {
        ACCESS_REVIEW_OF_TOKEN,
        ACCESS_REVIEW_OF_ACCESS,
} AccessReviewKind;

typedef struct AuthorizerSpec {
        char *node_name; /* borrowed, like all members below */
        const uint8_t *ticket_key;
        bool is_alone;           /* there is no API server to query, so administrators may do
                                  * everything */
        bool has_anonymous;      /* a user without a certificate or token is system:anonymous */
        bool has_token_reviews;  /* false: all tokens are refused */
        bool has_access_reviews; /* false: authenticated users may do everything */
        uint64_t token_usec, allowed_usec, denied_usec; /* how long answers are cached */

        /* Requests that the API server review 'body'. If it returns 0, access_check_reviewed() is
         * called once, later, unless cancel_review() is called first. -EAGAIN with a message: the
         * request cannot be sent. */
        int (*start_review)(void *userdata, AccessReviewKind kind, const char *body,
                            AccessCheck *check, void **ret_request, Error *reterr);
        void (*cancel_review)(void *request);
        void *userdata;
} AuthorizerSpec;

/* 0 or -ENOMEM. */
int authorizer_new(const AuthorizerSpec *spec, Authorizer **ret);
Authorizer *authorizer_free(Authorizer *authorizer);

/* Tickets are accepted only if they are for these authorities. NULL: the authorities are unknown,
 * and all tickets are accepted. */
void authorizer_set_authorities(Authorizer *authorizer, const char *hash);

typedef struct AccessQuestion {     /* all members are borrowed */
        const char *ticket, *token; /* NULL or "": there is none */
        RequestAttributes attributes;
} AccessQuestion;

/* Borrowed, and valid during the callback. */
typedef struct AccessAnswer {
        unsigned status;     /* an HTTP status: 200, 401, 403, 429, 500; 503: try again */
        const char *message; /* NULL if 'status' is 200 */
        const ApiUser *user; /* NULL: unknown */
} AccessAnswer;

typedef void (*access_answer_t)(const AccessAnswer *answer, void *userdata);

/* 'on_answer' is called once, unless the check is cancelled. If it is called before this function
 * returns, '*ret' is NULL. 0 or -ENOMEM. */
int authorizer_check(Authorizer *authorizer, const AccessQuestion *question,
                     access_answer_t on_answer, void *userdata, AccessCheck **ret);
void access_check_cancel(AccessCheck *check);

/* The API server's reply, or {"error":"…"}; NULL: out of memory. */
void access_check_reviewed(AccessCheck *check, const char *json);
