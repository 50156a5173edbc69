/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The identities of this node, for which values of Secrets are encrypted: X25519 keys of age, in
 * <state>/secrets/identity, sealed by systemd unless the configuration permits that they are kept
 * in clear. The newest one is the node's recipient; older ones only open what was encrypted before
 * a rotation. */

#include "common/age-file.h"

#include <stdbool.h>
#include <systemd/sd-event.h>

typedef struct NodeIdentity NodeIdentity;

typedef struct NodeIdentityConfig {
        sd_event *event;
        const char *state_dir;              /* borrowed */
        bool is_kept_clear;                 /* secretsAtRest: clear */
        void (*on_changed)(void *userdata); /* from the loop: identities can be had, or cannot */
        void *userdata;
} NodeIdentityConfig;

typedef enum IdentityAction {
        IDENTITY_MAKE,   /* if there is none */
        IDENTITY_ROTATE, /* a new one; the others stay for decrypting */
        IDENTITY_REMOVE_OLD,
        N_IDENTITY_ACTIONS,
} IdentityAction;

extern const char *const identity_action_names[N_IDENTITY_ACTIONS];

/* Reads the file, but opens nothing yet. 0 or -errno. */
int node_identity_new(const NodeIdentityConfig *config, NodeIdentity **ret);
NodeIdentity *node_identity_free(NodeIdentity *identity);
DEFINE_CLEANUP(NodeIdentity *, node_identity_free)

/* The keys, borrowed until the next turn of the loop. 0; -EAGAIN: they are being unsealed, and
 * on_changed() follows; -ENOKEY: there are none; -EKEYREJECTED; with a message. */
int node_identity_get(NodeIdentity *identity, const AgeKey **ret, size_t *ret_n, Error *reterr);

/* Starts a change; the JSON below shows its end. 0; -EBUSY: another one is not finished; or -errno;
 * with a message. */
int node_identity_change(NodeIdentity *identity, IdentityAction action, Error *reterr);

/* {"recipients": ["age1…"], "isBusy": …, "isSealed": …, "error": …}, newest first, which the caller
 * frees; NULL: out of memory. */
char *node_identity_to_json(const NodeIdentity *identity);
