/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The eviction manager: observes the node's memory, disks and process IDs while pods run, sets the
 * node's conditions (MemoryPressure, …, ReadonlyFilesystem), and reclaims resources when a
 * threshold is met: on a disk, unused images first, then one pod at a time (pod-evictor.h). */

#include "agent/eviction/eviction-message.h"
#include "agent/eviction/signal-observations.h"
#include "agent/model/event.h"
#include "common/error.h"

#include <stdio.h>
#include <systemd/sd-event.h>

typedef struct EvictionManager EvictionManager;

typedef struct EvictionManagerCallbacks {
        /* Whether there are pods that may exhaust resources. */
        bool (*has_active_pods)(void *userdata);
        /* Whether an eviction, or with 'of_images' a removal of images, is in progress: its effect
         * is not visible yet. */
        bool (*is_reclaiming)(bool of_images, void *userdata);
        /* Removes unused images. Returns true if there are any and they can be removed now. */
        bool (*remove_images)(void *userdata);
        /* Evicts one pod. True: a pod was found or is being searched for, and is_reclaiming()
         * returns true until this is done. */
        bool (*evict)(const ResourceShortage *shortage, void *userdata);
        /* The node's conditions have changed, see eviction_manager_conditions(). */
        void (*on_conditions)(void *userdata);
        /* An event of the node: a resource is reclaimed, or the file system is read-only. */
        void (*on_event)(const PodEvent *event, void *userdata);
} EvictionManagerCallbacks;

typedef struct EvictionManagerConfig {
        sd_event *event;
        const EvictionPolicy *policy;
        ObservedPaths paths;
        const EvictionManagerCallbacks *callbacks;
        void *userdata;
} EvictionManagerConfig;

/* Everything that the configuration points to is borrowed and outlives the manager. 0 or -errno. */
int eviction_manager_new(const EvictionManagerConfig *config, EvictionManager **ret);
EvictionManager *eviction_manager_free(EvictionManager *manager);
DEFINE_CLEANUP(EvictionManager *, eviction_manager_free)

/* Restores a condition that an earlier agent observed at this time (realtime, in this boot). */
void eviction_manager_restore_condition(EvictionManager *manager, NodeCondition condition,
                                        uint64_t seen_at);

/* Observes the node now, unless that has just been done. For decisions that need the current
 * conditions. */
void eviction_manager_synchronize(EvictionManager *manager);

/* A pod has started: monitoring starts unless it is already running. */
void eviction_manager_wake(EvictionManager *manager);

/* Prints signals, thresholds and the next observation for `mainstay debug dump`. */
void eviction_manager_dump(const EvictionManager *manager, FILE *out);

const NodeConditions *eviction_manager_conditions(const EvictionManager *manager);
