/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Service account tokens as data: the TokenRequest, its response, the cached form, and the time at
 * which a token is refreshed. Pure functions: time is an argument. */

#include "common/macros.h"

#include <stdint.h>

enum {
        TOKEN_SECONDS_DEFAULT = 3600, /* expirationSeconds, if the projection does not set it */
        TOKEN_REFRESH_MAX_SEC = 24 * 3600,
        TOKEN_REFRESH_MIN_SEC = 10,
        TOKEN_BINDING_SEC = 20, /* maximum time until the API server has processed the binding of a
                                 * new pod to this node */
};

/* Identifies a token: all fields of a TokenRequest. */
typedef struct TokenIdentity {
        const char *namespace;
        const char *pod;
        const char *pod_uid;
        const char *audience; /* NULL: the API server's */
        int64_t seconds;
} TokenIdentity;

/* How long after 'now' a token that expires at 'expires' (both realtime) is refreshed: at 80 % of
 * its lifetime or after a day, whichever is earlier, as in the kubelet. If a token seems to have
 * expired
 * when it arrives, the clocks differ, and 'seconds', the requested lifetime, is used. */
uint64_t token_refresh_delay(uint64_t now, uint64_t expires, int64_t seconds);

/* Whether a refusal may be temporary, because the API server's Node authorizer and NodeRestriction
 * detect with a delay that a pod belongs to this node. 'message' is the message of the Status. */
bool token_refusal_may_pass(unsigned status, const char *message);

/* A TokenRequest. The caller frees it; NULL: out of memory. */
char *token_request_to_json(const TokenIdentity *identity);

/* The token and its expiry in a response. 0; -EBADMSG if there is none; -ENOMEM. */
int token_response_parse(const char *json, size_t length, char **ret_token, uint64_t *ret_expires);

/* The cached form: the time of the refresh (realtime), the token, and its expiry (realtime; 0:
 * unknown). */
char *token_cache_format(const char *token, uint64_t refresh_at, uint64_t expires_at);

/* 0 with the token, the delay after 'now' until it is refreshed, and its expiry. The delay is 0 if
 * that time has passed, or if it is so far away that the clock must have been changed. -EBADMSG;
 * -ENOMEM. */
int token_cache_parse(const char *text, uint64_t now, char **ret_token, uint64_t *ret_delay,
                      uint64_t *ret_expires_at);
