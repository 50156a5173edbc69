/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Decides what a client of mainstay-api may do, like the kubelet does: who it is, by a ticket of
 * the signer for its certificate, by its token (TokenReview), or anonymous; and whether that user
 * may (SubjectAccessReview). mainstay-api sends a request for each action, and is not trusted
 * otherwise. Answers of the API server are kept for a while. */

#include "agent/model/client-ticket.h"
#include "agent/model/request-attributes.h"

typedef struct Authorizer Authorizer;
typedef struct AccessCheck AccessCheck;

typedef enum AccessReviewKind {
        ACCESS_REVIEW_OF_TOKEN,
        ACCESS_REVIEW_OF_ACCESS,
} AccessReviewKind;

typedef struct AuthorizerSpec {
        char *node_name; /* borrowed, as all below */
        const uint8_t *ticket_key;
        bool is_alone;           /* there is no API server to query: administrators may do
                                  * everything */
        bool has_anonymous;      /* without certificate and token a user is system:anonymous */
        bool has_token_reviews;  /* else all tokens are refused */
        bool has_access_reviews; /* else all authenticated users may do everything */
        uint64_t token_usec, allowed_usec, denied_usec; /* for how long answers are kept */

        /* Has the API server review 'body'. After a 0 access_check_reviewed() is called, later and
         * once, unless cancel_review() is called before. -EAGAIN with a message: it cannot be
         * sent. */
        int (*start_review)(void *userdata, AccessReviewKind kind, const char *body,
                            AccessCheck *check, void **ret_request, Error *reterr);
        void (*cancel_review)(void *request);
        void *userdata;
} AuthorizerSpec;

/* 0 or -ENOMEM. */
int authorizer_new(const AuthorizerSpec *spec, Authorizer **ret);
Authorizer *authorizer_free(Authorizer *authorizer);

/* Tickets are of these authorities only. NULL: it is not known, and they are of any. */
void authorizer_set_authorities(Authorizer *authorizer, const char *hash);

typedef struct AccessQuestion {     /* all is borrowed */
        const char *ticket, *token; /* NULL or "": there is none */
        RequestAttributes attributes;
} AccessQuestion;

/* Borrowed, during the callback. */
typedef struct AccessAnswer {
        unsigned status;     /* of HTTP: 200, 401, 403, 429, 500; 503: try again */
        const char *message; /* unless it is 200 */
        const ApiUser *user; /* NULL: it is not known */
} AccessAnswer;

typedef void (*access_answer_t)(const AccessAnswer *answer, void *userdata);

/* 'on_answer' is called once, unless the check is cancelled, maybe before this returns: then '*ret'
 * is NULL. 0 or -ENOMEM. */
int authorizer_check(Authorizer *authorizer, const AccessQuestion *question,
                     access_answer_t on_answer, void *userdata, AccessCheck **ret);
void access_check_cancel(AccessCheck *check);

/* The API server's reply, or {"error":"…"}; NULL: out of memory. */
void access_check_reviewed(AccessCheck *check, const char *json);
