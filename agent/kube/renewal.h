/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* When a certificate is to be replaced, and what is to be said of it meanwhile. Times are realtime
 * microseconds; pure functions. */

#include <stdint.h>

/* At 70 to 90 % of its life, as 'chance' has it, so that not all nodes renew in one minute. */
uint64_t renewal_due(uint64_t begins, uint64_t expires, uint32_t chance);

typedef enum CertificateHealth {
        CERTIFICATE_FINE,
        CERTIFICATE_LOW,      /* 20 % of its life is left, and it was not replaced */
        CERTIFICATE_CRITICAL, /* 5 % */
        CERTIFICATE_EXPIRED,
        CERTIFICATE_NOT_YET, /* or the clock is wrong */
        N_CERTIFICATE_HEALTHS,
} CertificateHealth;

CertificateHealth certificate_health(uint64_t begins, uint64_t expires, uint64_t now);

/* When its health may be another; UINT64_MAX: never. */
uint64_t certificate_next_look(uint64_t begins, uint64_t expires, uint64_t now);

/* What is to be said of it: in memory that the caller frees; NULL of one that is fine. */
char *certificate_trouble(uint64_t begins, uint64_t expires, uint64_t now);
