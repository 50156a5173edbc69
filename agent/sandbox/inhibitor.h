/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Where a logind is on the system bus, a shutdown that it is asked for (systemctl poweroff, the
 * power button) waits for us: we hold one of its delay locks, hear that the machine is about to go
 * down while everything still runs, and give the lock back when our pods are stopped.
 *
 * All is asked and nothing is waited for. Where there is no bus or no logind, that is said once in
 * the log, and pods are stopped when PID 1 stops the service. */

#include "agent/sandbox/units.h"
#include "common/error.h"

#include <stdint.h>
#include <systemd/sd-event.h>

typedef struct Inhibitor Inhibitor;

typedef struct InhibitorConfig {
        sd_event *event;
        uint64_t needed_usec; /* how long a shutdown has to wait at most */
        Units *units;         /* to have logind's maximum raised where it is less; NULL: it stays */
        const char *logind_conf_dir; /* where a drop-in says so until the next boot; borrowed */
        /* A shutdown begins, or one that had begun does not happen after all; from the loop. */
        void (*on_shutdown)(bool begins, void *userdata);
        void *userdata;
} InhibitorConfig;

/* Connects, and takes the lock when it can. 0 or -ENOMEM: that there is no bus is no error. */
int inhibitor_new(const InhibitorConfig *config, Inhibitor **ret);

/* The shutdown that was told of need not wait for us any longer. When it is cancelled the lock is
 * taken again. */
void inhibitor_release(Inhibitor *inhibitor);

Inhibitor *inhibitor_free(Inhibitor *inhibitor);
DEFINE_CLEANUP(Inhibitor *, inhibitor_free)
