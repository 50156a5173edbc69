/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The ticket of mainstay-api's signer for a connection whose client has proved its certificate: the
 * user, with a MAC that only the signer and the agent can create. mainstay-api presents it to the
 * agent with each request of that client. */

#include "agent/model/api-user.h"
#include "common/error.h"

#include <stdint.h>

enum {
        TICKET_KEY_SIZE = 32,
        TICKET_SIZE_MAX = 16 * 1024,
};

/* 'expires' is realtime; 'authorities' is the hash of the authorities against which the certificate
 * was verified. The caller frees it. 0, -E2BIG: the user has too many groups, -ENOMEM. */
int client_ticket_format(const ApiUser *user, uint64_t expires, const char *authorities,
                         const uint8_t key[TICKET_KEY_SIZE], char **ret);

/* 0 with the user; -EACCES: the ticket is forged, has expired, or is for other authorities than
 * these (NULL: any). */
int client_ticket_parse(const char *text, uint64_t now, const char *authorities,
                        const uint8_t key[TICKET_KEY_SIZE], ApiUser *ret);
