/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Whether a controller manager is active, judged by its Lease (client-go: leaderelection). It is
 * active as long as the Lease is renewed, which a changed renewTime shows; the clocks of the
 * machines need not agree. It is absent once the Lease has been unchanged for its whole duration,
 * after which another manager could also take it. A renewTime that is old by this machine's clock
 * is only a reason to check again sooner. Pure. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct ControllerLease {
        char *renewed;    /* the last known renewTime; NULL: none */
        uint64_t seen_at; /* boot time at which it was first seen */
} ControllerLease;

typedef enum ControllerVerdict {
        CONTROLLER_UNDECIDED, /* as before */
        CONTROLLER_ACTIVE,
        CONTROLLER_ABSENT,
        N_CONTROLLER_VERDICTS,
} ControllerVerdict;

/* Intervals of checks in microseconds: if nothing is doubtful, and before anything is known. */
extern const uint64_t controller_lease_poll_usec, controller_lease_first_usec;

/* Whether a response with status 404 comes from the API server and not from a proxy. */
bool controller_lease_is_not_found(const char *json, size_t length);

/* 'json' is the current Lease; any other response changes nothing. The times are in microseconds,
 * of the boot clock and realtime. Returns when to check again. */
ControllerVerdict controller_lease_observe(ControllerLease *lease, const char *json, size_t length,
                                           uint64_t boottime, uint64_t realtime,
                                           uint64_t *ret_next_look_usec);

void controller_lease_done(ControllerLease *lease);
