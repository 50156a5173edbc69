/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The certificate authority of a node that has not joined an API server. It issues the serving
 * certificate of mainstay-api and the client certificates of kubeconfigs. Only this node trusts it.
 */

#include "common/error.h"

#include <stdint.h>

typedef struct NodeAuthority NodeAuthority;

/* A new P-256 key and its certificate, valid for ten years. 'now_usec' is realtime; if the clock is
 * not set, certificates are valid at all times. */
int node_authority_new(const char *node_name, uint64_t now_usec, NodeAuthority **ret,
                       Error *reterr);

/* Parses the output of node_authority_format(). 1: the certificate had expired, and was renewed
 * with the same key, so that the certificates that it has issued remain valid; 0: not expired;
 * -EINVAL with a message. */
int node_authority_parse(const char *pem, uint64_t now_usec, NodeAuthority **ret, Error *reterr);
NodeAuthority *node_authority_free(NodeAuthority *authority);
DEFINE_CLEANUP(NodeAuthority *, node_authority_free)

/* The certificate and the key in PEM, to be freed with secret_free(); NULL: out of memory. */
char *node_authority_format(const NodeAuthority *authority);

/* The certificate in PEM, borrowed. */
const char *node_authority_certificate(const NodeAuthority *authority);

typedef struct NodeCertificateSpec {
        const char *common_name;
        const char *organization;     /* the user's group; NULL: none */
        const char *const *dns_names; /* of a server, terminated by NULL; NULL: a client's
                                       * certificate */
        const char *const *addresses; /* likewise, numeric */
        unsigned valid_days;
} NodeCertificateSpec;

/* A new key and its certificate in PEM; free the key with secret_free(). 0, or -errno with a
 * message. */
int node_authority_issue(const NodeAuthority *authority, const NodeCertificateSpec *spec,
                         uint64_t now_usec, char **ret_certificate, char **ret_key, Error *reterr);

/* The first function does the same with a self-signed certificate; the second one returns whether a
 * certificate in PEM is self-signed. */
int self_signed_issue(const NodeCertificateSpec *spec, uint64_t now_usec, char **ret_certificate,
                      char **ret_key, Error *reterr);
bool is_self_signed(const char *certificate);
