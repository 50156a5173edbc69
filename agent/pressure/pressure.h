/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Watches what the node has left, while something runs that could use it up; and, when that is too
 * little, has room made: images first where it is a disk, then one pod at a time. Who goes, and
 * how, is decided elsewhere. */

#include "agent/pressure/observe.h"
#include "agent/pressure/sentence.h"
#include "common/error.h"

#include <systemd/sd-event.h>

typedef struct Pressure Pressure;

typedef struct PressureCallbacks {
        /* There are pods, so that what is left may become less. */
        bool (*is_busy)(void *userdata);
        /* What was asked for is still under way: it is too early to tell whether it was enough. */
        bool (*is_relieving)(void *userdata);
        /* Unused images go. Whether there are any. */
        bool (*remove_images)(void *userdata);
        /* One pod goes. Whether there is one, or it is still being looked for; if so,
         * is_relieving() is true for a while. */
        bool (*evict)(const Shortage *shortage, void *userdata);
        /* The node's conditions are others: pressure_conditions(). */
        void (*on_conditions)(void *userdata);
        /* Something is short from now on, and is to be reclaimed. */
        void (*on_shortage)(const Shortage *shortage, void *userdata);
} PressureCallbacks;

typedef struct PressureConfig {
        sd_event *event;
        const EvictionPolicy *policy;
        ObservedPlaces places;
        const PressureCallbacks *callbacks;
        void *userdata;
} PressureConfig;

/* All that the configuration points to is borrowed, and outlives it. 0 or -errno. */
int pressure_new(const PressureConfig *config, Pressure **ret);
Pressure *pressure_free(Pressure *pressure);
DEFINE_CLEANUP(Pressure *, pressure_free)

/* An earlier agent has seen the condition at this time (realtime, in this boot). */
void pressure_remember(Pressure *pressure, NodeCondition condition, uint64_t seen_at);

/* Looks now, if the last look was not just before; before something is decided on. */
void pressure_look(Pressure *pressure);

/* Something began to run: from now on it is to be watched. Costs nothing where it is. */
void pressure_wake(Pressure *pressure);

const NodeConditions *pressure_conditions(const Pressure *pressure);
