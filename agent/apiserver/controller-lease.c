/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/apiserver/controller-lease.h"

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/json-text.h"

#include <string.h>

enum {
        LEASE_DEFAULT_SEC = 15, /* the controller manager's default, if the Lease does not contain a
                                 * duration */
        LEASE_MIN_SEC = 5,
        LEASE_MAX_SEC = 60,
};

const uint64_t controller_lease_poll_usec = 60 * USEC_PER_SEC,
               controller_lease_first_usec = 10 * USEC_PER_SEC;

static uint64_t lease_duration_usec(const json_t *spec) {
        json_int_t seconds = json_integer_value(json_object_get(spec, "leaseDurationSeconds"));

        if (seconds <= 0)
                seconds = LEASE_DEFAULT_SEC;
        return (uint64_t) MIN(MAX(seconds, LEASE_MIN_SEC), LEASE_MAX_SEC) * USEC_PER_SEC;
}

static bool is_renewal_old(const char *renewed, uint64_t duration, uint64_t realtime) {
        uint64_t at;

        return parse_rfc3339(renewed, &at) >= 0 && realtime > at && realtime - at > duration;
}

static void remember_renewal(ControllerLease *lease, const char *renewed, uint64_t boottime) {
        free(lease->renewed);
        lease->renewed = strdup(renewed);
        lease->seen_at = boottime;
}

static const char *kind_of_object(const json_t *object) {
        return strna(json_text(object, "kind"));
}

bool controller_lease_is_not_found(const char *json, size_t length) {
        cleanup_json json_t *object = json_loadb(json, length, 0, NULL);

        return streq(kind_of_object(object), "Status");
}

ControllerVerdict controller_lease_observe(ControllerLease *lease, const char *json, size_t length,
                                           uint64_t boottime, uint64_t realtime,
                                           uint64_t *ret_next_look_usec) {
        cleanup_json json_t *object = json_loadb(json, length, 0, NULL);
        const json_t *spec = json_object_get(object, "spec");
        const char *renewed = json_text(spec, "renewTime");
        const char *holder = json_text(spec, "holderIdentity");
        uint64_t duration = lease_duration_usec(spec), unchanged;
        bool is_first = !lease->renewed;

        *ret_next_look_usec = controller_lease_poll_usec;
        if (!streq(kind_of_object(object), "Lease"))
                return CONTROLLER_UNDECIDED;
        if (!renewed || !holder || !holder[0])
                return CONTROLLER_ABSENT;
        if (is_first || !streq(lease->renewed, renewed)) {
                remember_renewal(lease, renewed, boottime);
                if (is_first)
                        *ret_next_look_usec = controller_lease_first_usec;
                else if (is_renewal_old(renewed, duration, realtime))
                        *ret_next_look_usec = duration;
                return is_first ? CONTROLLER_UNDECIDED : CONTROLLER_ACTIVE;
        }
        unchanged = boottime - lease->seen_at;
        if (unchanged >= duration)
                return CONTROLLER_ABSENT;
        *ret_next_look_usec = duration - unchanged;
        return CONTROLLER_UNDECIDED;
}

void controller_lease_done(ControllerLease *lease) {
        free(lease->renewed);
        *lease = (ControllerLease){ 0 };
}
