/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/kube/renewal.h"

#include "agent/kube/client.h"
#include "common/clock.h"

#include <stdio.h>

enum {
        RENEW_FROM = 70, /* percent of its life */
        RENEW_TO = 90,
        LOW = 80,
        CRITICAL = 95,
};

static uint64_t at_percent(uint64_t begins, uint64_t expires, unsigned percent) {
        return expires > begins ? begins + (expires - begins) / 100 * percent : expires;
}

uint64_t renewal_due(uint64_t begins, uint64_t expires, uint32_t chance) {
        uint64_t from = at_percent(begins, expires, RENEW_FROM);

        return from + (at_percent(begins, expires, RENEW_TO) - from) / 1000 * (chance % 1001);
}

CertificateHealth certificate_health(uint64_t begins, uint64_t expires, uint64_t now) {
        if (now < begins)
                return CERTIFICATE_NOT_YET;
        if (now >= expires)
                return CERTIFICATE_EXPIRED;
        if (now >= at_percent(begins, expires, CRITICAL))
                return CERTIFICATE_CRITICAL;
        return now >= at_percent(begins, expires, LOW) ? CERTIFICATE_LOW : CERTIFICATE_FINE;
}

uint64_t certificate_next_look(uint64_t begins, uint64_t expires, uint64_t now) {
        const uint64_t times[] = { begins, at_percent(begins, expires, LOW),
                                   at_percent(begins, expires, CRITICAL), expires };

        for (size_t i = 0; i < N_ELEMENTS(times); i++)
                if (times[i] > now)
                        return times[i];
        return UINT64_MAX;
}

char *certificate_trouble(uint64_t begins, uint64_t expires, uint64_t now) {
        static const char *const words[N_CERTIFICATE_HEALTHS] = {
                [CERTIFICATE_LOW] = "expires soon",
                [CERTIFICATE_CRITICAL] = "is about to expire",
                [CERTIFICATE_EXPIRED] = "has expired",
                [CERTIFICATE_NOT_YET] = "is not valid yet",
        };
        CertificateHealth health = certificate_health(begins, expires, now);
        bool is_clear = health == CERTIFICATE_LOW || health == CERTIFICATE_CRITICAL;
        char text[RFC3339_SIZE], clock[CLOCK_WORDS_SIZE], *sentence = NULL;

        if (!words[health])
                return NULL;
        format_rfc3339(text, health == CERTIFICATE_NOT_YET ? begins : expires);
        kube_clock_words(clock, now);
        if (asprintf(&sentence, "the certificate of this node %s, %s %s%s%s", words[health],
                     health == CERTIFICATE_NOT_YET ? "from" : "at", text, is_clear ? "" : "; ",
                     is_clear ? "" : clock) < 0)
                return NULL;
        return sentence;
}
