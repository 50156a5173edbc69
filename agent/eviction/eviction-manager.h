/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Watches what the node has left, while something runs that could use it up; and, when that is too
 * little, has room made: images first where it is a disk, then one pod at a time. Who goes, and
 * how, is decided elsewhere. */

#include "agent/eviction/eviction-message.h"
#include "agent/eviction/signal-observations.h"
#include "common/error.h"

#include <systemd/sd-event.h>

typedef struct EvictionManager EvictionManager;

typedef struct EvictionManagerCallbacks {
        /* There are pods, so that what is left may become less. */
        bool (*has_active_pods)(void *userdata);
        /* What was asked for is still under way: it is too early to tell whether it was enough. */
        bool (*is_reclaiming)(void *userdata);
        /* Unused images go. Whether there are any. */
        bool (*remove_images)(void *userdata);
        /* One pod goes. Whether there is one, or it is still being looked for; if so,
         * is_reclaiming() is true for a while. */
        bool (*evict)(const ResourceShortage *shortage, void *userdata);
        /* The node's conditions are others: eviction_manager_conditions(). */
        void (*on_conditions)(void *userdata);
        /* Something is short from now on, and is to be reclaimed. */
        void (*on_shortage)(const ResourceShortage *shortage, void *userdata);
} EvictionManagerCallbacks;

typedef struct EvictionManagerConfig {
        sd_event *event;
        const EvictionPolicy *policy;
        ObservedPaths paths;
        const EvictionManagerCallbacks *callbacks;
        void *userdata;
} EvictionManagerConfig;

/* All that the configuration points to is borrowed, and outlives it. 0 or -errno. */
int eviction_manager_new(const EvictionManagerConfig *config, EvictionManager **ret);
EvictionManager *eviction_manager_free(EvictionManager *manager);
DEFINE_CLEANUP(EvictionManager *, eviction_manager_free)

/* An earlier agent has seen the condition at this time (realtime, in this boot). */
void eviction_manager_restore_condition(EvictionManager *manager, NodeCondition condition,
                                        uint64_t seen_at);

/* Looks now, if the last look was not just before; before something is decided on. */
void eviction_manager_synchronize(EvictionManager *manager);

/* Something began to run: from now on it is to be watched. Costs nothing where it is. */
void eviction_manager_wake(EvictionManager *manager);

const NodeConditions *eviction_manager_conditions(const EvictionManager *manager);
