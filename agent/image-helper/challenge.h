/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* WWW-Authenticate, RFC 9110 section 11.6.1, as registries use it: what a registry wants to see
 * before it answers. Pure. */

#include "common/error.h"

typedef enum ChallengeScheme {
        CHALLENGE_NONE,
        CHALLENGE_BASIC,
        CHALLENGE_BEARER,
} ChallengeScheme;

typedef struct Challenge {
        ChallengeScheme scheme;
        char *realm; /* of Bearer: where tokens are given */
        char *service;
        char *scope;
        char *error; /* "invalid_token", "insufficient_scope" */
} Challenge;

/* Adds what one header's value says; of several schemes Bearer is preferred. What cannot be read
 * ends the reading, and what was read before it counts. 0 or -ENOMEM. */
int challenge_read(Challenge *challenge, const char *value);

void challenge_done(Challenge *challenge);
