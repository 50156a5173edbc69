/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The struct that controller.c and requests.c share; no other file includes this. */

#include "agent/daemonset/controller.h"
#include "agent/daemonset/daemonset-state.h"

struct DaemonSetController {
        DaemonSetControllerConfig config;
        DaemonSetState **sets; /* owned */
        size_t n_sets;
        DaemonSetSyncPass pass;
        bool has_undesired; /* a set that is no longer desired still has pods */
        char **warnings;
        sd_event_source *timer;
};

/* The desired set of this name, or NULL. */
DaemonSetState *find_desired_daemonset(const DaemonSetController *controller, const char *namespace,
                                       const char *name);

/* Schedules a pass. */
void daemonset_controller_schedule_sync(DaemonSetController *controller);
