/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The agent's end of the signer: starts it when it is needed, gives it the serving key and the
 * authorities of clients, and connects mainstay-api with it. See model/signer-protocol.h. */

#include "agent/model/client-ticket.h"

#include <systemd/sd-event.h>

typedef struct ApiSigner ApiSigner;

typedef struct ApiSignerSpec { /* all is borrowed */
        sd_event *event;
        char *program;       /* mainstay-api */
        const char *run_dir; /* keeps the key of tickets, for the next agent */
        /* Tickets are of these authorities from now on. */
        void (*on_authorities)(const char *hash, void *userdata);
        void *userdata;
} ApiSignerSpec;

/* Starts no process yet. 0, or -errno with a message. */
int api_signer_new(const ApiSignerSpec *spec, ApiSigner **ret, Error *reterr);

/* The process ends as well. NULL is fine. */
ApiSigner *api_signer_free(ApiSigner *signer);

const uint8_t *api_signer_ticket_key(const ApiSigner *signer);

/* Sets its material, see model/signer-protocol.h. It is taken from the call on. 0 or -errno. */
int api_signer_set_material(ApiSigner *signer, char *json_consume);

/* A connection for mainstay-api, of which this is one end. -errno. */
int api_signer_connect(ApiSigner *signer);
