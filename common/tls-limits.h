/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Limits of the computations that the peer of a TLS handshake can cause. GnuTLS parses its
 * certificates and uses its key before it checks any authority, and limits neither: an RSA key of
 * 40960 bits with an exponent as long, or 128 KiB of parts of a subject, take seconds, larger keys
 * minutes. Keys are limited as in Go's crypto/tls and crypto/rsa.
 *
 * A program that uses libcurl contains limited-handshake.c as well: libcurl has no option for it.
 */

#include <gnutls/gnutls.h>

/* Sets the session's hook, before its handshake, which ends with GNUTLS_E_INSUFFICIENT_SECURITY for
 * a key that is too large, GNUTLS_E_UNSUPPORTED_CERTIFICATE_TYPE for one that is neither RSA nor of
 * an elliptic curve, and GNUTLS_E_HANDSHAKE_TOO_LARGE for a message that is too long. */
void tls_limit_peer(gnutls_session_t session);

/* The hook itself, for a program that has its own; and its check of one key, of a certificate in
 * DER. */
int tls_check_peer_message(gnutls_session_t session, unsigned type, unsigned when,
                           unsigned is_incoming, const gnutls_datum_t *message);
int tls_check_key(const gnutls_datum_t *der);
