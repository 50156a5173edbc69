/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Graceful node shutdown: holds a delay lock of logind. When logind receives a shutdown request
 * (systemctl poweroff, the power button), it signals the shutdown and waits for us while all
 * services still run; the lock is released when our pods have terminated.
 *
 * All calls are asynchronous. Without a bus or logind, that is logged once, and pods are stopped
 * when PID 1 stops the service. In which order pods terminate is decided elsewhere. */

#include "agent/sandbox/systemd-client.h"
#include "common/error.h"

#include <stdint.h>
#include <systemd/sd-event.h>

typedef struct ShutdownInhibitor ShutdownInhibitor;

typedef struct ShutdownInhibitorConfig {
        sd_event *event;
        uint64_t needed_usec;        /* the longest time that pods may take to terminate */
        SystemdClient *systemd;      /* to raise logind's limit if it is less; NULL: leave it */
        const char *logind_conf_dir; /* for a drop-in that is valid until the next boot; borrowed */
        /* A shutdown is starting, or one that was starting has been cancelled; called from the
         * loop. */
        void (*on_shutdown)(bool is_starting, void *userdata);
        void *userdata;
} ShutdownInhibitorConfig;

/* Connects, and takes the lock when possible. 0 or -ENOMEM: a missing bus is not an error. */
int shutdown_inhibitor_new(const ShutdownInhibitorConfig *config, ShutdownInhibitor **ret);

/* Lets the announced shutdown proceed. If it is cancelled, the lock is taken again. */
void shutdown_inhibitor_release(ShutdownInhibitor *inhibitor);

ShutdownInhibitor *shutdown_inhibitor_free(ShutdownInhibitor *inhibitor);
DEFINE_CLEANUP(ShutdownInhibitor *, shutdown_inhibitor_free)
