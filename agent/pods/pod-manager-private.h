/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the files of the supervisor share: supervisor.c hears wishes and steps, edits.c brings a pod
 * that runs to what is wished now, going-down.c stops all. Nobody else includes this. */

#include "agent/pods/eviction-candidates.h"
#include "agent/pods/orphaned-pods.h"
#include "agent/pods/pod-manager.h"
#include "agent/pods/pod-worker.h"
#include "agent/pods/preflight.h"

/* One namespace/name: the pod that is there, and the one that is to follow it. */
typedef struct PodEntry {
        PodManager *manager;
        char *key; /* "<namespace>/<name>/": with the UID behind it, what pod_manager_next_pod()
                      orders by */
        char *description; /* "<namespace>/<name>" */
        PodWorker *worker;
        PodSource source; /* of 'worker', as it is recorded */
        Pod *next;
        PodSource next_source;
        Preflight *preflight; /* of 'next', while 'life' would have to be stopped for it */
        bool is_dirty;
        bool is_reported;
        bool is_rejection_logged; /* 'next', while the machine goes down; it has been said */
        sd_event_source *retry_timer;
        uint64_t retry_delay_usec; /* of the staging */
        char *start_error;         /* why 'next' cannot begin, as it was logged */
        struct PodEntry *next_entry;
} PodEntry;

struct PodManager {
        PodContext context;
        const PodManagerCallbacks *callbacks;
        void *userdata;
        PodEntry *entries; /* sorted by key */
        sd_event_source *step_source;
        uint64_t n_pods_started;
        OrphanedPods *orphans;
        bool has_swept_orphans;
        const ShutdownStage *stages; /* NULL: the machine is not going down */
        size_t n_stages, stage;      /* the one that is being stopped */
        sd_event_source *stage_timer;
        void (*on_shut_down)(void *userdata);
        void *shutdown_userdata;
        PodEvictions evictions;
        bool has_qos_groups; /* they have been made, with their weights */
        bool qos_is_due;     /* pods came, went or were edited: once a turn, however many */
};

/* All that is dirty is stepped soon. */
void pod_manager_schedule_step(PodManager *s);

/* The slot is stepped soon. */
void pod_entry_mark_dirty(PodEntry *entry);

/* The same after a while. */
void pod_entry_mark_dirty_later(PodEntry *entry, uint64_t delay_usec);

/* Writes the record of what runs, or is about to. */
int pod_entry_store_record(PodManager *s, const PodEntry *entry, const Pod *pod,
                           const PodSource *source, const char *outdated, Error *reterr);

/* Nothing is to follow. */
void pod_entry_forget_next(PodEntry *entry);

/* There is a pod, and another is wanted under its name: does what can be done of it now. */
void pod_entry_apply_edit(PodManager *s, PodEntry *entry);

/* Images may be there now. */
void pod_entry_retry_preflight(PodEntry *entry);

/* While the machine goes down: on to the next stage when this one is empty or its time is over. */
void pod_manager_continue_shutdown(PodManager *s);

/* What is to follow cannot begin while the machine goes down; says so once. */
void pod_manager_reject_for_shutdown(PodManager *s, PodEntry *entry);
