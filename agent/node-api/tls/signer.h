/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The serving key, and who a client is. It signs handshakes of this server and nothing else, and
 * gives a ticket for a handshake that proves the client's certificate, once. Its requests come from
 * mainstay-api, which is not trusted. */

#include "agent/model/client-ticket.h"

typedef struct Signer Signer;

/* 0 or -ENOMEM. */
int signer_new(Signer **ret);
Signer *signer_free(Signer *signer);
DEFINE_CLEANUP(Signer *, signer_free)

/* New material, JSON: see agent/model/signer-protocol.h. Invalid one leaves the last good one in
 * use; mainstay-api gets the message. */
void signer_use_material(Signer *signer, const uint8_t ticket_key[TICKET_KEY_SIZE],
                         const char *json, size_t length);

/* The hash of the authorities in use; "": there are none. */
const char *signer_authorities(const Signer *signer);

/* Replies to a packet of mainstay-api. The caller frees the reply, which is terminated by a NUL. 0
 * or -ENOMEM. */
int signer_answer(Signer *signer, const char *packet, size_t length, char **ret,
                  size_t *ret_length);
