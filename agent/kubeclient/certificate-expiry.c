/* SPDX-License-Identifier: Apache-2.0 */
/* Computes rotation deadline and state of a client certificate from its validity. */

#include "agent/kubeclient/certificate-expiry.h"

#include "common/clock.h"
#include "common/text.h"

#include <stdio.h>

enum {
        RENEW_FROM = 70, /* percent of its lifetime */
        RENEW_TO = 90,
        LOW = 80,
        CRITICAL = 95,
};

static uint64_t time_at_percent(uint64_t not_before, uint64_t not_after, unsigned percent) {
        return not_after > not_before ? not_before + (not_after - not_before) / 100 * percent
                                      : not_after;
}

uint64_t certificate_rotation_deadline(uint64_t not_before, uint64_t not_after, uint32_t chance) {
        uint64_t from = time_at_percent(not_before, not_after, RENEW_FROM);

        return from +
               (time_at_percent(not_before, not_after, RENEW_TO) - from) / 1000 * (chance % 1001);
}

CertificateHealth certificate_health(uint64_t not_before, uint64_t not_after, uint64_t now) {
        if (now < not_before)
                return CERTIFICATE_NOT_YET_VALID;
        if (now >= not_after)
                return CERTIFICATE_EXPIRED;
        if (now >= time_at_percent(not_before, not_after, CRITICAL))
                return CERTIFICATE_CRITICAL;
        return now >= time_at_percent(not_before, not_after, LOW) ? CERTIFICATE_EXPIRES_SOON
                                                                  : CERTIFICATE_VALID;
}

uint64_t certificate_next_check(uint64_t not_before, uint64_t not_after, uint64_t now) {
        const uint64_t times[] = { not_before, time_at_percent(not_before, not_after, LOW),
                                   time_at_percent(not_before, not_after, CRITICAL), not_after };

        for (size_t i = 0; i < N_ELEMENTS(times); i++)
                if (times[i] > now)
                        return times[i];
        return UINT64_MAX;
}

char *certificate_describe_problem(uint64_t not_before, uint64_t not_after, uint64_t now) {
        static const char *const words[N_CERTIFICATE_HEALTHS] = {
                [CERTIFICATE_EXPIRES_SOON] = "expires soon",
                [CERTIFICATE_CRITICAL] = "is about to expire",
                [CERTIFICATE_EXPIRED] = "has expired",
                [CERTIFICATE_NOT_YET_VALID] = "is not valid yet",
        };
        CertificateHealth health = certificate_health(not_before, not_after, now);
        bool is_clear = health == CERTIFICATE_EXPIRES_SOON || health == CERTIFICATE_CRITICAL;
        char text[RFC3339_SIZE], clock[CLOCK_DESCRIPTION_SIZE];

        if (!words[health])
                return NULL;
        format_rfc3339(text, health == CERTIFICATE_NOT_YET_VALID ? not_before : not_after);
        clock_describe(clock, now);
        return text_format("the certificate %s, %s %s%s%s", words[health],
                           health == CERTIFICATE_NOT_YET_VALID ? "from" : "at", text,
                           is_clear ? "" : "; ", is_clear ? "" : clock);
}
