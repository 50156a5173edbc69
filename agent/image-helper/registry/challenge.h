/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Parser for WWW-Authenticate (RFC 9110 section 11.6.1) as used by registries: the authentication
 * that a registry requires. registry-client.c responds to it. Pure. */

#include "common/error.h"

typedef enum ChallengeScheme {
        CHALLENGE_NONE,
        CHALLENGE_BASIC,
        CHALLENGE_BEARER,
} ChallengeScheme;

typedef struct Challenge {
        ChallengeScheme scheme;
        char *realm; /* for Bearer: URL of the token server */
        char *service;
        char *scope;
        char *error; /* "invalid_token", "insufficient_scope" */
} Challenge;

/* Adds the challenges in the value of one header; Bearer is preferred over other schemes. Parsing
 * stops at the first error; the parameters before it are used. 0 or -ENOMEM. */
int challenge_read(Challenge *challenge, const char *value);

void challenge_done(Challenge *challenge);
