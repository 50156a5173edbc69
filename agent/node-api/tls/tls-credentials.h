/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The certificate that the server presents, and the certificate authorities whose clients it
 * trusts. The signer has the key and decides whether a client has proved its certificate.
 * Credentials are immutable: new ones replace them, and existing connections keep theirs. */

#include "common/error.h"

#include <gnutls/gnutls.h>

typedef struct TlsCredentials TlsCredentials;

/* Sends a request to the signer: see agent/model/signer-protocol.h. Blocks until the reply arrives,
 * which the caller frees, with a NUL at the end. 0, or -errno with a message. */
typedef struct TlsSigner {
        int (*ask)(void *userdata, const void *request, size_t length, char **ret,
                   size_t *ret_length, Error *reterr);
        void *userdata; /* outlives the credentials */
} TlsSigner;

typedef struct TlsMaterial {
        TlsSigner signer;        /* it has the key */
        const char *certificate; /* PEM */
        const char *client_ca;   /* as above; NULL: no client needs a certificate */
        const char *priorities;  /* GnuTLS priority string; NULL: GnuTLS' default */
        /* for TLS 1.2 connections, by the certificate's key; NULL: the same, "": none */
        const char *tls12_ecdsa_priorities, *tls12_rsa_priorities;
} TlsMaterial;

/* 0 with one reference; -EINVAL with a message; -ENOMEM. */
int tls_credentials_new(const TlsMaterial *material, TlsCredentials **ret, Error *reterr);
TlsCredentials *tls_credentials_ref(TlsCredentials *credentials);
TlsCredentials *tls_credentials_unref(TlsCredentials *credentials);
DEFINE_CLEANUP(TlsCredentials *, tls_credentials_unref)

/* The server's end of a connection that never blocks, without its transport. The session holds a
 * reference to the credentials. 0 or -ENOMEM. */
int tls_credentials_start_session(TlsCredentials *credentials, gnutls_session_t *ret);
void tls_session_end(gnutls_session_t session);

/* gnutls_handshake(), with the signer. */
int tls_session_handshake(gnutls_session_t session);

/* To be called once after the handshake: makes the signer verify the client's certificate and its
 * signature. 1 with a ticket, which the caller frees; 0: the client has not sent a certificate;
 * -EACCES with a message. */
int tls_session_prove_client(gnutls_session_t session, char **ret_ticket, Error *reterr);
