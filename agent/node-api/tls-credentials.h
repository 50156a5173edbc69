/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The certificate that the server shows and the certificate authorities whose clients it trusts.
 * A set of them does not change: a new one replaces it, and connections keep theirs. */

#include "agent/node-api/api-user.h"
#include "common/error.h"

#include <gnutls/gnutls.h>

typedef struct TlsCredentials TlsCredentials;

/* PEM. */
typedef struct TlsMaterial {
        const char *certificate, *key;
        const char *client_ca;  /* NULL: no client is asked for a certificate */
        const char *priorities; /* GnuTLS's priority string; NULL: that of GnuTLS itself */
        /* of connections of TLS 1.2, by the certificate's key; NULL: the same, "": none */
        const char *tls12_ecdsa_priorities, *tls12_rsa_priorities;
} TlsMaterial;

/* 0 with one reference; -EINVAL with a message; -ENOMEM. */
int tls_credentials_new(const TlsMaterial *material, TlsCredentials **ret, Error *reterr);
TlsCredentials *tls_credentials_ref(TlsCredentials *credentials);
TlsCredentials *tls_credentials_unref(TlsCredentials *credentials);
DEFINE_CLEANUP(TlsCredentials *, tls_credentials_unref)

/* The server's end of a connection that never blocks, without its transport; to be freed with
 * gnutls_deinit(). 0 or -ENOMEM. */
int tls_credentials_start_session(const TlsCredentials *credentials, gnutls_session_t *ret);

/* The user that the client's certificate names: CN, O and UID of its subject, where one of the
 * authorities has signed it for clients and it is valid now. 1; 0: the client has shown none;
 * -EACCES with a message; -ENOMEM. */
int tls_credentials_authenticate(const TlsCredentials *credentials, gnutls_session_t session,
                                 ApiUser *ret, Error *reterr);
