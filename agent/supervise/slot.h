/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the files of the supervisor share: supervisor.c hears wishes and steps, edits.c brings a pod
 * that runs to what is wished now, going-down.c stops all. Nobody else includes this. */

#include "agent/supervise/eviction.h"
#include "agent/supervise/orphans.h"
#include "agent/supervise/pod.h"
#include "agent/supervise/staging.h"
#include "agent/supervise/supervisor.h"

/* One namespace/name: the pod that is there, and the one that is to follow it. */
typedef struct Slot {
        Supervisor *supervisor;
        char *key; /* "<namespace>/<name>/": with the UID behind it, what supervisor_next() orders
                      by */
        char *description; /* "<namespace>/<name>" */
        PodLife *life;
        char *file; /* where 'life' comes from, as it is recorded */
        Pod *next;
        char *next_file;
        Staging *staging;    /* of 'next', while 'life' would have to be stopped for it */
        unsigned generation; /* of the wishes in which it was named last */
        bool is_dirty;
        bool was_told;
        bool was_refused; /* 'next', while the machine goes down; it has been said */
        sd_event_source *retry_timer;
        uint64_t retry_delay_usec; /* of the staging */
        char *trouble;             /* why 'next' cannot begin, as it was logged */
        struct Slot *following;
} Slot;

struct Supervisor {
        PodContext context;
        const SupervisorCallbacks *callbacks;
        void *userdata;
        Slot *slots; /* sorted by key */
        unsigned generation;
        sd_event_source *step_source;
        uint64_t n_pods_started;
        Orphans *orphans;
        bool has_swept_orphans;
        const ShutdownStage *stages; /* NULL: the machine is not going down */
        size_t n_stages, stage;      /* the one that is being stopped */
        sd_event_source *stage_timer;
        void (*on_shut_down)(void *userdata);
        void *shutdown_userdata;
        Evictions evictions;
        bool has_qos_groups; /* they have been made, with their weights */
        bool qos_is_due;     /* pods came, went or were edited: once a turn, however many */
};

/* All that is dirty is stepped soon. */
void supervisor_schedule(Supervisor *s);

/* The slot is stepped soon. */
void slot_mark(Slot *slot);

/* The same after a while. */
void slot_mark_later(Slot *slot, uint64_t delay_usec);

/* Writes the record of what runs, or is about to. */
int slot_store(Supervisor *s, const Slot *slot, const Pod *pod, const char *file,
               const char *outdated, Error *reterr);

/* Nothing is to follow. */
void slot_forget_next(Slot *slot);

/* There is a pod, and another is wanted under its name: does what can be done of it now. */
void slot_consider_edit(Supervisor *s, Slot *slot);

/* Images may be there now. */
void slot_retry_staging(Slot *slot);

/* While the machine goes down: on to the next stage when this one is empty or its time is over. */
void supervisor_follow_shutdown(Supervisor *s);

/* What is to follow cannot begin while the machine goes down; says so once. */
void supervisor_refuse(Supervisor *s, Slot *slot);
