/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Parser of WWW-Authenticate (RFC 9110 section 11.6.1) as registries use it: the authentication
 * that a registry requires. registry-client.c answers it. Pure. */

#include "common/error.h"

typedef enum ChallengeScheme {
        CHALLENGE_NONE,
        CHALLENGE_BASIC,
        CHALLENGE_BEARER,
} ChallengeScheme;

typedef struct Challenge {
        ChallengeScheme scheme;
        char *realm; /* of Bearer: URL of the token server */
        char *service;
        char *scope;
        char *error; /* "invalid_token", "insufficient_scope" */
} Challenge;

/* Adds the challenges in the value of one header; Bearer is preferred over other schemes. Parsing
 * stops at the first error, and the parameters before it count. 0 or -ENOMEM. */
int challenge_read(Challenge *challenge, const char *value);

void challenge_done(Challenge *challenge);
