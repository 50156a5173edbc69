/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Graceful node shutdown: holds a delay lock of logind. When logind receives a shutdown request
 * (systemctl poweroff, the power button), it announces the shutdown and waits for the agent while
 * all services are still running; the agent releases the lock when the pods have terminated.
 *
 * All calls are asynchronous. If there is no bus or no logind, this is logged once, and pods are
 * stopped when PID 1 stops the service. The order in which pods terminate is determined elsewhere.
 */

#include "agent/sandbox/systemd-client.h"
#include "common/error.h"

#include <stdint.h>
#include <systemd/sd-event.h>

typedef struct ShutdownInhibitor ShutdownInhibitor;

typedef struct ShutdownInhibitorConfig {
        sd_event *event;
        uint64_t needed_usec;        /* the longest time that pods may take to terminate */
        SystemdClient *systemd;      /* raises logind's limit if it is lower; NULL: it is not
                                      * changed */
        const char *logind_conf_dir; /* for a drop-in that is valid until the next boot; borrowed */
        /* A shutdown starts, or was cancelled; called from the loop. */
        void (*on_shutdown)(bool is_starting, void *userdata);
        void *userdata;
} ShutdownInhibitorConfig;

/* Connects, and takes the lock when possible. 0 or -ENOMEM; a missing bus is not an error. */
int shutdown_inhibitor_new(const ShutdownInhibitorConfig *config, ShutdownInhibitor **ret);

/* Lets the announced shutdown proceed. If it is cancelled, the lock is taken again. */
void shutdown_inhibitor_release(ShutdownInhibitor *inhibitor);

ShutdownInhibitor *shutdown_inhibitor_free(ShutdownInhibitor *inhibitor);
DEFINE_CLEANUP(ShutdownInhibitor *, shutdown_inhibitor_free)
