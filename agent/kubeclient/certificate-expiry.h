/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The time at which a client certificate is rotated, and its health. Times are realtime
 * microseconds; pure functions. */

#include <stdint.h>

/* Between 70 and 90 % of its lifetime, depending on 'chance', so that not all nodes rotate at the
 * same moment. */
uint64_t certificate_rotation_deadline(uint64_t not_before, uint64_t not_after, uint32_t chance);

typedef enum CertificateHealth {
        CERTIFICATE_VALID,
        CERTIFICATE_EXPIRES_SOON, /* 20 % of its lifetime is left, and it has not been replaced */
        CERTIFICATE_CRITICAL,     /* 5 % */
        CERTIFICATE_EXPIRED,
        CERTIFICATE_NOT_YET_VALID, /* or the clock is wrong */
        N_CERTIFICATE_HEALTHS,
} CertificateHealth;

/* The health of a certificate; all times are realtime in microseconds. */
CertificateHealth certificate_health(uint64_t not_before, uint64_t not_after, uint64_t now);

/* The time of the next possible change of its health; UINT64_MAX: never. */
uint64_t certificate_next_check(uint64_t not_before, uint64_t not_after, uint64_t now);

/* The problem of the certificate; the caller frees it; NULL: none. */
char *certificate_describe_problem(uint64_t not_before, uint64_t not_after, uint64_t now);
