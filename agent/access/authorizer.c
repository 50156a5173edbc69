/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/access/authorizer.h"

#include "agent/access/review-objects.h"
#include "agent/model/review-cache.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/strv.h"
#include "common/text.h"

#include <stdio.h>

enum {
        REVIEWS_MAX = 16, /* in progress */
        STATUS_OK = 200,
        STATUS_UNAUTHORIZED = 401,
        STATUS_FORBIDDEN = 403,
        STATUS_TOO_MANY = 429,
        STATUS_ERROR = 500,
        STATUS_UNAVAILABLE = 503,
};

struct Authorizer {
        AuthorizerSpec spec;
        char *authorities;
        ReviewCache *tokens;         /* ApiUser */
        ReviewCache *invalid_tokens; /* invalid tokens are stored separately, so that made-up ones
                                      * do not displace valid ones */
        ReviewCache *accesses;       /* "yes" or "no" */
        unsigned n_reviews;          /* in progress */
};

struct AccessCheck {
        Authorizer *authorizer;
        access_answer_t on_answer;
        void *userdata;
        char *token; /* the token being reviewed */
        RequestAttributes attributes;
        size_t n_denied; /* number of denied subresources */
        ApiUser user;    /* has no name until it is known */
        void *review;    /* NULL: none is in progress */
        AccessCheck **ret;
};

static void free_user_of_token(void *value) {
        api_user_done(value);
        free(value);
}

int authorizer_new(const AuthorizerSpec *spec, Authorizer **ret) {
        Authorizer *authorizer = calloc(1, sizeof(*authorizer));

        if (!authorizer)
                return -ENOMEM;
        authorizer->spec = *spec;
        if (review_cache_new(free_user_of_token, &authorizer->tokens) < 0 ||
            review_cache_new(free, &authorizer->invalid_tokens) < 0 ||
            review_cache_new(free, &authorizer->accesses) < 0) {
                authorizer_free(authorizer);
                return -ENOMEM;
        }
        *ret = authorizer;
        return 0;
}

Authorizer *authorizer_free(Authorizer *authorizer) {
        if (!authorizer)
                return NULL;
        review_cache_free(authorizer->tokens);
        review_cache_free(authorizer->invalid_tokens);
        review_cache_free(authorizer->accesses);
        free(authorizer->authorities);
        free(authorizer);
        return NULL;
}

void authorizer_set_authorities(Authorizer *authorizer, const char *hash) {
        (void) text_replace(&authorizer->authorities, hash);
}

/* ---- answers ---- */

static void access_check_free(AccessCheck *check) {
        api_user_done(&check->user);
        free(check->token);
        free(check);
}

static void answer_check(AccessCheck *check, unsigned status, const char *message) {
        const AccessAnswer answer = { status, message, check->user.name ? &check->user : NULL };

        if (check->ret)
                *check->ret = NULL;
        check->on_answer(&answer, check->userdata);
        access_check_free(check);
}

static void refuse_as_unauthorized(AccessCheck *check) {
        answer_check(check, STATUS_UNAUTHORIZED, "Unauthorized");
}

static void refuse_access(AccessCheck *check) {
        cleanup_free char *text = format_forbidden(check->user.name, &check->attributes);

        answer_check(check, STATUS_FORBIDDEN, text ? text : "Forbidden");
}

/* 'is_transient': another agent, or this one at a later time, may be able to send the review. */
static void fail_access(AccessCheck *check, bool is_transient, const char *why) {
        cleanup_free char *text = format_forbidden(check->user.name, &check->attributes);
        cleanup_free char *message = NULL;

        log_warning("Cannot review access: %s", why);
        message = text ? text_format("Authorization error %s", text + strlen("Forbidden ")) : NULL;
        answer_check(check, is_transient ? STATUS_UNAVAILABLE : STATUS_ERROR,
                     message ? message : "Authorization error");
}

/* ---- reviews ---- */

/* 0; -EBUSY, -EAGAIN with a message, or another -errno. */
static int start_access_review(AccessCheck *check, AccessReviewKind kind, const char *body,
                               Error *reterr) {
        Authorizer *authorizer = check->authorizer;
        int r;

        if (authorizer->n_reviews >= REVIEWS_MAX)
                return -EBUSY;
        r = authorizer->spec.start_review(authorizer->spec.userdata, kind, body, check,
                                          &check->review, reterr);
        if (r >= 0)
                authorizer->n_reviews++;
        return r;
}

static void refuse_for_now(AccessCheck *check) {
        answer_check(check, STATUS_TOO_MANY, "too many reviews of tokens and access are under way");
}

void access_check_cancel(AccessCheck *check) {
        if (!check)
                return;
        if (check->review) {
                check->authorizer->spec.cancel_review(check->review);
                check->authorizer->n_reviews--;
        }
        access_check_free(check);
}

/* ---- access ---- */

/* Names may contain anything except control characters, which are separators here. */
static char *format_access_key(const AccessCheck *check, const char *subresource) {
        const ApiUser *user = &check->user;
        char *text = NULL;
        size_t size;
        FILE *out = open_memstream(&text, &size);

        if (!out)
                return NULL;
        fprintf(out, "%s\n%s\n%zu:%s\n%zu:%s\n%s\n", check->attributes.verb, subresource,
                strlen(user->name), user->name, strlen(strna(user->uid)), strna(user->uid),
                strna(user->extra));
        strv_foreach(group, user->groups) {
                fprintf(out, "%zu:%s\n", strlen(*group), *group);
        }
        if (fclose(out) != 0) {
                free(text);
                return NULL;
        }
        return text;
}

static void keep_access(const AccessCheck *check, bool is_allowed) {
        const Authorizer *authorizer = check->authorizer;
        cleanup_free char *key =
                format_access_key(check, check->attributes.subresources[check->n_denied]);
        uint64_t now = now_boottime_usec();
        char *word = strdup(is_allowed ? "yes" : "no");

        if (key && word)
                review_cache_put(authorizer->accesses, key, word, now,
                                 now + (is_allowed ? authorizer->spec.allowed_usec
                                                   : authorizer->spec.denied_usec));
        else
                free(word);
}

/* 1: allowed, 0: denied, -EAGAIN: unknown. */
static int find_known_access(const AccessCheck *check, const char *subresource) {
        cleanup_free char *key = format_access_key(check, subresource);
        const char *known =
                key ? review_cache_find(check->authorizer->accesses, key, now_boottime_usec())
                    : NULL;

        return known ? streq(known, "yes") : -EAGAIN;
}

static void review_access(AccessCheck *check, const char *subresource) {
        const AuthorizerSpec *spec = &check->authorizer->spec;
        cleanup_free char *body = access_review_format(&check->user, check->attributes.verb,
                                                       spec->node_name, subresource);
        cleanup_error Error error = ERROR_NULL;
        int r;

        if (!body) {
                refuse_access(check); /* not UTF-8 */
                return;
        }
        r = start_access_review(check, ACCESS_REVIEW_OF_ACCESS, body, &error);
        if (r == -EBUSY)
                refuse_for_now(check);
        else if (r < 0)
                fail_access(check, r == -EAGAIN && !spec->is_alone, error_message(&error, r));
}

/* As in an API server; a lone node has no API server to query. */
static bool needs_no_review(const AccessCheck *check) {
        const AuthorizerSpec *spec = &check->authorizer->spec;

        return !spec->has_access_reviews ||
               (spec->is_alone && strv_contains(check->user.groups, "system:masters"));
}

static void decide_access(AccessCheck *check) {
        const RequestAttributes *attributes = &check->attributes;

        if (needs_no_review(check)) {
                answer_check(check, STATUS_OK, NULL);
                return;
        }
        for (; check->n_denied < attributes->n_subresources; check->n_denied++) {
                const char *subresource = attributes->subresources[check->n_denied];
                int r = find_known_access(check, subresource);

                if (r > 0)
                        answer_check(check, STATUS_OK, NULL);
                else if (r < 0)
                        review_access(check, subresource);
                if (r != 0)
                        return;
        }
        refuse_access(check);
}

static void take_access_review(AccessCheck *check, const char *json) {
        cleanup_error Error error = ERROR_NULL;
        int r = json ? access_review_parse(json, &error) : -ENOMEM;

        if (r < 0) {
                fail_access(check, /* is_transient= */ false, error_message(&error, r));
                return;
        }
        keep_access(check, r > 0);
        if (r > 0) {
                answer_check(check, STATUS_OK, NULL);
                return;
        }
        check->n_denied++;
        decide_access(check);
}

/* ---- users ---- */

static void use_known_user(AccessCheck *check) {
        if (!strv_contains(check->user.groups, "system:authenticated") &&
            strv_append(&check->user.groups, "system:authenticated") < 0)
                refuse_as_unauthorized(check);
        else
                decide_access(check);
}

static void use_anonymous_user(AccessCheck *check) {
        check->user.name = strdup("system:anonymous");
        if (!check->user.name || strv_append(&check->user.groups, "system:unauthenticated") < 0)
                refuse_as_unauthorized(check);
        else
                decide_access(check);
}

static void keep_token(const AccessCheck *check, bool is_valid) {
        const Authorizer *authorizer = check->authorizer;
        uint64_t now = now_boottime_usec(), expires = now + authorizer->spec.token_usec;
        ApiUser *copy = is_valid ? calloc(1, sizeof(*copy)) : NULL;
        char *mark = is_valid ? NULL : strdup("");

        if (mark)
                review_cache_put(authorizer->invalid_tokens, check->token, mark, now, expires);
        if (copy && api_user_copy(&check->user, copy) >= 0)
                review_cache_put(authorizer->tokens, check->token, copy, now, expires);
        else
                free(copy);
}

static void take_token_review(AccessCheck *check, const char *json) {
        cleanup_error Error error = ERROR_NULL;
        int r = json ? token_review_parse(json, &check->user, &error) : -ENOMEM;

        if (r < 0)
                log_warning("Cannot review a token: %s", error_message(&error, r));
        else
                keep_token(check, r > 0);
        if (r <= 0)
                refuse_as_unauthorized(check);
        else
                use_known_user(check);
}

void access_check_reviewed(AccessCheck *check, const char *json) {
        check->review = NULL;
        check->authorizer->n_reviews--;
        if (check->user.name)
                take_access_review(check, json);
        else
                take_token_review(check, json);
}

/* 1 with the user; 0: the token is invalid; -EAGAIN: unknown. */
static int find_known_token(AccessCheck *check) {
        const Authorizer *authorizer = check->authorizer;
        uint64_t now = now_boottime_usec();
        const ApiUser *user = review_cache_find(authorizer->tokens, check->token, now);

        if (user)
                return api_user_copy(user, &check->user) >= 0;
        return review_cache_find(authorizer->invalid_tokens, check->token, now) ? 0 : -EAGAIN;
}

static void review_token(AccessCheck *check) {
        cleanup_free char *body = token_review_format(check->token);
        cleanup_error Error error = ERROR_NULL;
        int r = body ? start_access_review(check, ACCESS_REVIEW_OF_TOKEN, body, &error) : -EINVAL;

        if (r == -EBUSY) {
                refuse_for_now(check);
                return;
        }
        if (r >= 0)
                return;
        if (body)
                log_warning("Cannot review a token: %s", error_message(&error, r));
        if (r == -EAGAIN && !check->authorizer->spec.is_alone)
                answer_check(check, STATUS_UNAVAILABLE, "Unauthorized");
        else
                refuse_as_unauthorized(check);
}

static void authenticate_by_token(AccessCheck *check) {
        int r = check->authorizer->spec.has_token_reviews ? find_known_token(check) : 0;

        if (r == -EAGAIN)
                review_token(check);
        else if (r > 0)
                use_known_user(check);
        else
                refuse_as_unauthorized(check);
}

/* ---- checks ---- */

static bool has_text(const char *text) {
        return text && *text;
}

/* A certificate has precedence as long as it is valid. */
static void authenticate(AccessCheck *check, const AccessQuestion *question) {
        const Authorizer *authorizer = check->authorizer;

        if (has_text(question->ticket) &&
            client_ticket_parse(question->ticket, now_realtime_usec(), authorizer->authorities,
                                authorizer->spec.ticket_key, &check->user) >= 0)
                use_known_user(check);
        else if (check->token)
                authenticate_by_token(check);
        else if (authorizer->spec.has_anonymous && !has_text(question->ticket))
                use_anonymous_user(check);
        else
                refuse_as_unauthorized(check);
}

int authorizer_check(Authorizer *authorizer, const AccessQuestion *question,
                     access_answer_t on_answer, void *userdata, AccessCheck **ret) {
        AccessCheck *check = calloc(1, sizeof(*check));

        if (!check)
                return -ENOMEM;
        *check = (AccessCheck){ .authorizer = authorizer,
                                .on_answer = on_answer,
                                .userdata = userdata,
                                .attributes = question->attributes,
                                .ret = ret };
        if (has_text(question->token)) {
                check->token = strdup(question->token);
                if (!check->token) {
                        access_check_free(check);
                        return -ENOMEM;
                }
        }
        *ret = check;
        authenticate(check, question);
        if (*ret)
                (*ret)->ret = NULL; /* the caller's variable is no longer valid */
        return 0;
}
