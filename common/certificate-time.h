/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* When a certificate is valid, in seconds since 1970. GnuTLS returns it in the time_t that it was
 * built with, which on a 32-bit distribution may end in 2038, and differ from ours. */

#include <gnutls/x509.h>
#include <stdint.h>

typedef struct CertificateTimes {
        int64_t not_before, not_after;
} CertificateTimes;

#define CERTIFICATE_NEVER_EXPIRES INT64_MAX

/* 0 or -EINVAL. */
int certificate_read_times(gnutls_x509_crt_t certificate, CertificateTimes *ret);

/* A code of GnuTLS. A time that its time_t cannot hold, and CERTIFICATE_NEVER_EXPIRES, becomes the
 * year 9999. */
int certificate_set_times(gnutls_x509_crt_t certificate, const CertificateTimes *times);
