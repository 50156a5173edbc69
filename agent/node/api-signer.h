/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The agent's end of the signer: starts it when it is needed, passes it the serving key and the
 * authorities of clients, and connects mainstay-api to it. See model/signer-protocol.h. */

#include "agent/model/client-ticket.h"

#include <systemd/sd-event.h>

typedef struct ApiSigner ApiSigner;

typedef struct ApiSignerSpec { /* all members are borrowed */
        sd_event *event;
        char *program;       /* mainstay-api */
        const char *run_dir; /* where the key of tickets is kept for the next agent */
        /* Tickets are valid for these authorities from now on. */
        void (*on_authorities)(const char *hash, void *userdata);
        void *userdata;
} ApiSignerSpec;

/* Does not start the process yet. 0, or -errno with a message. */
int api_signer_new(const ApiSignerSpec *spec, ApiSigner **ret, Error *reterr);

/* Also ends the process. NULL is allowed. */
ApiSigner *api_signer_free(ApiSigner *signer);

const uint8_t *api_signer_ticket_key(const ApiSigner *signer);

/* Sets the signer's material, see model/signer-protocol.h. Takes ownership of 'json', even on
 * failure. 0 or -errno. */
int api_signer_set_material(ApiSigner *signer, char *json_consume);

/* Connects mainstay-api to the signer: returns mainstay-api's end of the connection, or -errno. */
int api_signer_connect(ApiSigner *signer);
