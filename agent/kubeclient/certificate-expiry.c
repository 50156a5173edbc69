/* SPDX-License-Identifier: Apache-2.0 */
/* Computes rotation deadline and state of a client certificate from its validity. */

#include "agent/kubeclient/certificate-expiry.h"

#include "common/clock.h"

#include <stdio.h>

enum {
        RENEW_FROM = 70, /* percent of its lifetime */
        RENEW_TO = 90,
        LOW = 80,
        CRITICAL = 95,
};

static uint64_t time_at_percent(uint64_t begins, uint64_t expires, unsigned percent) {
        return expires > begins ? begins + (expires - begins) / 100 * percent : expires;
}

uint64_t certificate_rotation_deadline(uint64_t begins, uint64_t expires, uint32_t chance) {
        uint64_t from = time_at_percent(begins, expires, RENEW_FROM);

        return from + (time_at_percent(begins, expires, RENEW_TO) - from) / 1000 * (chance % 1001);
}

CertificateHealth certificate_health(uint64_t begins, uint64_t expires, uint64_t now) {
        if (now < begins)
                return CERTIFICATE_NOT_YET_VALID;
        if (now >= expires)
                return CERTIFICATE_EXPIRED;
        if (now >= time_at_percent(begins, expires, CRITICAL))
                return CERTIFICATE_CRITICAL;
        return now >= time_at_percent(begins, expires, LOW) ? CERTIFICATE_EXPIRES_SOON
                                                            : CERTIFICATE_VALID;
}

uint64_t certificate_next_check(uint64_t begins, uint64_t expires, uint64_t now) {
        const uint64_t times[] = { begins, time_at_percent(begins, expires, LOW),
                                   time_at_percent(begins, expires, CRITICAL), expires };

        for (size_t i = 0; i < N_ELEMENTS(times); i++)
                if (times[i] > now)
                        return times[i];
        return UINT64_MAX;
}

char *certificate_describe_problem(uint64_t begins, uint64_t expires, uint64_t now) {
        static const char *const words[N_CERTIFICATE_HEALTHS] = {
                [CERTIFICATE_EXPIRES_SOON] = "expires soon",
                [CERTIFICATE_CRITICAL] = "is about to expire",
                [CERTIFICATE_EXPIRED] = "has expired",
                [CERTIFICATE_NOT_YET_VALID] = "is not valid yet",
        };
        CertificateHealth health = certificate_health(begins, expires, now);
        bool is_clear = health == CERTIFICATE_EXPIRES_SOON || health == CERTIFICATE_CRITICAL;
        char text[RFC3339_SIZE], clock[CLOCK_DESCRIPTION_SIZE], *message = NULL;

        if (!words[health])
                return NULL;
        format_rfc3339(text, health == CERTIFICATE_NOT_YET_VALID ? begins : expires);
        clock_describe(clock, now);
        if (asprintf(&message, "the certificate of this node %s, %s %s%s%s", words[health],
                     health == CERTIFICATE_NOT_YET_VALID ? "from" : "at", text,
                     is_clear ? "" : "; ", is_clear ? "" : clock) < 0)
                return NULL;
        return message;
}
