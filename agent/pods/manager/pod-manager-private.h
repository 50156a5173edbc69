/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The pod manager's own struct, shared by its files: pod-manager.c starts and steps the pods,
 * pod-manager-edit.c applies edits to running pods, pod-manager-shutdown.c stops all of them at
 * node shutdown, pod-manager-preemption.c stops those whose resources a critical pod needs,
 * pod-manager-eviction.c, -queries.c and -dump.c list them. No other file includes this. */

#include "agent/pods/manager/orphaned-pods.h"
#include "agent/pods/manager/pod-manager.h"
#include "agent/pods/manager/successor-preflight.h"
#include "agent/pods/worker/pod-worker.h"
#include "common/clock-watch.h"

/* The state of a pod as seen by the pods that start after it. */
typedef enum PodOrderPresence {
        POD_IS_MISSING,
        POD_IS_NOT_READY,
        POD_IS_READY,
} PodOrderPresence;

/* One namespace/name: the pod that exists, and the one that follows it. */
typedef struct PodEntry {
        PodManager *manager;
        char *key;         /* "<namespace>/<name>/"; with the UID appended, it defines the order of
                            * pod_manager_next_pod() */
        char *description; /* "<namespace>/<name>" */
        PodWorker *worker;
        PodSource source; /* of 'worker', as recorded */
        Pod *next;
        PodSource next_source;
        Preflight *preflight; /* preflight of 'next', if 'worker' would have to be stopped for it */
        bool is_dirty;
        bool holds_ports;  /* it held host ports when it was last stepped */
        bool is_preempted; /* it is being preempted, and still exists */
        bool gives_way;    /* loses its devices; only for pod_manager_displace_device_holders() */
        bool is_reported;
        PodOrderPresence presence; /* its state as seen by the pods that wait for it */
        size_t stop_step;          /* in the current stage of a node shutdown */
        bool is_rejection_logged;  /* the message that 'next' does not start during a shutdown */
        sd_event_source *retry_timer;
        uint64_t retry_delay_usec;     /* of the preflight */
        char *start_error;             /* why 'next' cannot start, as it was logged; with: */
        const PodStatus *start_status; /* of 'next'; NULL: it has not failed to start */
        struct PodEntry *next_entry;
} PodEntry;

struct PodManager {
        PodContext context;
        const PodManagerCallbacks *callbacks;
        void *userdata;
        PodEntry *entries; /* sorted by key */
        sd_event_source *step_source;
        ClockWatch *clock_watch;
        uint64_t n_pods_started, n_user_pods_started;
        uint64_t n_preemptions[N_NODE_AMOUNTS]; /* preempted pods, by the first resource that was
                                                 * missing */
        OrphanedPods *orphans;
        bool has_swept_orphans;
        char **unread; /* UIDs of pods whose records could not be read; these pods are not orphans
                        */
        const ShutdownStage *stages; /* NULL: no node shutdown is in progress */
        size_t n_stages, stage;      /* 'stage' is the one that is being stopped */
        size_t n_steps, step; /* step of that stage: a pod is stopped before the pods after which it
                               * starts */
        sd_event_source *stage_timer;
        void (*on_shut_down)(void *userdata);
        void *shutdown_userdata;
        bool has_qos_groups; /* the cgroups of the QoS classes exist, with their weights */
        bool qos_is_due;     /* pods were started, removed or edited: update them once per turn */
};

/* Schedules a step of all dirty entries. */
void pod_manager_schedule_step(PodManager *manager);

/* Marks the entry to be stepped soon. */
void pod_entry_mark_dirty(PodEntry *entry);

/* The same after a delay. */
void pod_entry_mark_dirty_later(PodEntry *entry, uint64_t delay_usec);

/* Writes the record of the pod that is running or about to run. */
int pod_entry_store_record(PodManager *manager, const PodEntry *entry, const Pod *pod,
                           const PodSource *source, const char *outdated, Error *reterr);

/* The entry with a worker for the pod with this full name, or for a pod that was adopted for the
 * API server's pod with this name. NULL: there is none, with an error. */
PodEntry *pod_manager_find_running(PodManager *manager, const char *namespace, const char *pod,
                                   Error *reterr);

/* No successor is desired anymore. */
void pod_entry_forget_next(PodEntry *entry);

/* If the pod runs and an edit of it is desired, does everything that can be done now. */
void pod_entry_apply_edit(PodManager *manager, PodEntry *entry);

/* Images may be available now. */
void pod_entry_retry_preflight(PodEntry *entry);

/* The source of a pod that has a worker or is to get one; NULL: neither. */
const PodSource *pod_manager_find_source(const PodManager *manager, const Pod *pod);

/* See PodContext.preempt, is_preempting and displace_device_holders. */
int pod_manager_preempt(const Pod *pod, const NodeUsage *missing, NodeUsage *ret_unmet,
                        void *userdata);
bool pod_manager_is_preempting(void *userdata);
bool pod_manager_displace_device_holders(const Pod *pod, void *userdata);

/* See PodContext.find_awaited_pods. */
PodOrderState pod_manager_find_awaited_pods(const Pod *pod, char **ret_message, void *userdata);

/* The entry's pod was stepped, or is gone: if its state as seen by other pods has changed, the pods
 * that wait for it are checked again. */
void pod_manager_notice_order(const PodManager *manager, PodEntry *entry, bool is_gone);

/* Determines the step in which each of these entries is stopped, and returns the number of steps,
 * at least one. */
typedef bool (*order_filter_t)(const PodManager *manager, const PodEntry *entry);
size_t pod_manager_choose_stop_steps(const PodManager *manager, order_filter_t filter);

/* During a node shutdown: starts the next step or stage when the current one is empty or its time
 * is over. */
void pod_manager_continue_shutdown(PodManager *manager);

/* The successor cannot start during a node shutdown; logged once. */
void pod_manager_reject_for_shutdown(PodManager *manager, PodEntry *entry);
