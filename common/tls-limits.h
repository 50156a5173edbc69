/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Limits the computations that the peer of a TLS handshake can cause. GnuTLS parses the peer's
 * certificates and uses its key before it checks any authority, and limits neither: an RSA key of
 * 40960 bits with an equally long exponent, or 128 KiB of parts of a subject, take seconds, and
 * larger keys take minutes. Keys are limited as in Go's crypto/tls and crypto/rsa.
 *
 * A program that uses libcurl also contains limited-handshake.c, because libcurl has no option for
 * this.
 */

#include <gnutls/gnutls.h>

/* Sets the session's hook, before its handshake. The handshake then fails with
 * GNUTLS_E_INSUFFICIENT_SECURITY if a key is too large, with GNUTLS_E_UNSUPPORTED_CERTIFICATE_TYPE
 * if it is neither RSA nor on an elliptic curve, and with GNUTLS_E_HANDSHAKE_TOO_LARGE if a message
 * is too long. */
void tls_limit_peer(gnutls_session_t session);

/* The hook itself, for a program that has its own hook; and the hook's check of the key in a DER
 * certificate. */
int tls_check_peer_message(gnutls_session_t session, unsigned type, unsigned when,
                           unsigned is_incoming, const gnutls_datum_t *message);
int tls_check_key(const gnutls_datum_t *der);
