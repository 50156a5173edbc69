/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Where a logind is on the system bus, a shutdown that it is asked for (systemctl poweroff, the
 * power button) waits for us: we hold one of its delay locks, hear that the machine is about to go
 * down while everything still runs, and give the lock back when our pods are stopped.
 *
 * All is asked and nothing is waited for. Where there is no bus or no logind, that is said once in
 * the log, and pods are stopped when PID 1 stops the service. */

#include "agent/sandbox/systemd-client.h"
#include "common/error.h"

#include <stdint.h>
#include <systemd/sd-event.h>

typedef struct ShutdownInhibitor ShutdownInhibitor;

typedef struct ShutdownInhibitorConfig {
        sd_event *event;
        uint64_t needed_usec; /* how long a shutdown has to wait at most */
        SystemdClient
                *systemd; /* to have logind's maximum raised where it is less; NULL: it stays */
        const char *logind_conf_dir; /* where a drop-in says so until the next boot; borrowed */
        /* A shutdown begins, or one that had begun does not happen after all; from the loop. */
        void (*on_shutdown)(bool is_starting, void *userdata);
        void *userdata;
} ShutdownInhibitorConfig;

/* Connects, and takes the lock when it can. 0 or -ENOMEM: that there is no bus is no error. */
int shutdown_inhibitor_new(const ShutdownInhibitorConfig *config, ShutdownInhibitor **ret);

/* The shutdown that was told of need not wait for us any longer. When it is cancelled the lock is
 * taken again. */
void shutdown_inhibitor_release(ShutdownInhibitor *inhibitor);

ShutdownInhibitor *shutdown_inhibitor_free(ShutdownInhibitor *inhibitor);
DEFINE_CLEANUP(ShutdownInhibitor *, shutdown_inhibitor_free)
