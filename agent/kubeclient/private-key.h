/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Private keys, and common parts of certificates and certificate requests. Results are GnuTLS
 * codes: negative is an error. */

#include <gnutls/x509.h>
#include <netinet/in.h>

/* A new key on P-256. The caller deinitializes '*ret', even after an error, unless it is NULL. */
int private_key_generate(gnutls_x509_privkey_t *ret);

/* The same for a key that private_key_format() wrote. At most 'max' bytes are read. */
int private_key_import(const char *pem, size_t max, gnutls_x509_privkey_t *ret);

/* PKCS#8 in PEM, to be freed by secret_free(); NULL: it cannot be exported, or out of memory. */
char *private_key_format(gnutls_x509_privkey_t key);

/* A text exported by GnuTLS, whose own copy is overwritten and freed. */
char *take_gnutls_text(gnutls_datum_t *datum);

/* Converts a numeric address to the form used in alternative names. Returns its length, 4 or 16; 0:
 * not an address. */
unsigned parse_alternative_address(const char *text, unsigned char ret[sizeof(struct in6_addr)]);
