/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Holds the serving key, and authenticates clients. It signs only handshakes of this server, and
 * issues one ticket for each handshake that proves the client's certificate. Its requests come from
 * mainstay-api, which is not trusted. */

#include "agent/model/client-ticket.h"

typedef struct Signer Signer;

/* 0 or -ENOMEM. */
int signer_new(Signer **ret);
Signer *signer_free(Signer *signer);
DEFINE_CLEANUP(Signer *, signer_free)

/* Sets new material, JSON: see agent/model/signer-protocol.h. If it is invalid, the last valid one
 * stays in use, and the message is sent to mainstay-api. */
void signer_use_material(Signer *signer, const uint8_t ticket_key[TICKET_KEY_SIZE],
                         const char *json, size_t length);

/* The hash of the authorities in use; "": none. */
const char *signer_authorities(const Signer *signer);

/* Replies to a packet from mainstay-api. The caller frees the reply, which is NUL-terminated. 0 or
 * -ENOMEM. */
int signer_answer(Signer *signer, const char *packet, size_t length, char **ret,
                  size_t *ret_length);
