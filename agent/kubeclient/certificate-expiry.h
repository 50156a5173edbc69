/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* When a certificate is to be replaced, and what is to be said of it meanwhile. Times are realtime
 * microseconds; pure functions. */

#include <stdint.h>

/* At 70 to 90 % of its life, as 'chance' has it, so that not all nodes renew in one minute. */
uint64_t certificate_rotation_deadline(uint64_t begins, uint64_t expires, uint32_t chance);

typedef enum CertificateHealth {
        CERTIFICATE_VALID,
        CERTIFICATE_EXPIRES_SOON, /* 20 % of its life is left, and it was not replaced */
        CERTIFICATE_CRITICAL,     /* 5 % */
        CERTIFICATE_EXPIRED,
        CERTIFICATE_NOT_YET_VALID, /* or the clock is wrong */
        N_CERTIFICATE_HEALTHS,
} CertificateHealth;

CertificateHealth certificate_health(uint64_t begins, uint64_t expires, uint64_t now);

/* When its health may be another; UINT64_MAX: never. */
uint64_t certificate_next_check(uint64_t begins, uint64_t expires, uint64_t now);

/* What is to be said of it: in memory that the caller frees; NULL of one that is fine. */
char *certificate_describe_problem(uint64_t begins, uint64_t expires, uint64_t now);
