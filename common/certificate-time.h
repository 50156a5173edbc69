/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The validity of a certificate, in seconds since 1970. GnuTLS returns it in the time_t with which
 * it was built, which may end in 2038 on a 32-bit distribution, and may differ from the time_t of
 * this program. */

#include <gnutls/x509.h>
#include <stdint.h>

typedef struct CertificateTimes {
        int64_t not_before, not_after;
} CertificateTimes;

#define CERTIFICATE_NEVER_EXPIRES INT64_MAX

/* 0 or -EINVAL. */
int certificate_read_times(gnutls_x509_crt_t certificate, CertificateTimes *ret);

/* Returns a GnuTLS code. A time that does not fit in GnuTLS' time_t, and CERTIFICATE_NEVER_EXPIRES,
 * becomes the year 9999. */
int certificate_set_times(gnutls_x509_crt_t certificate, const CertificateTimes *times);
