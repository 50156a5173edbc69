/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* One pass of the DaemonSet controller over all sets, and the data that all parts of the controller
 * share. The controller owns it; controller.c starts and ends each pass. */

#include "agent/daemonset/observed-pods.h"
#include "agent/daemonset/orphan-pods.h"
#include "agent/daemonset/pod-access.h"
#include "agent/daemonset/rules/rules.h"
#include "agent/model/daemonset.h"
#include "agent/model/desired-pods.h"
#include "agent/model/node.h"
#include "common/clock.h"

/* Admits a pod that the controller is about to create, in place of an API server. 1: it is
 * admitted; 0 with the refusal, which the caller releases; -ENOMEM. */
typedef int (*admit_daemonset_pod_t)(const PodSource *source, const DaemonSet *set, const Pod *pod,
                                     DaemonSetRefusal *ret, void *userdata);

typedef struct DaemonSetSyncPass {
        /* Set once; borrowed. */
        const char *state_dir;
        const NodeLabelsTaints *node;
        const SteadyClock *clock;
        const PodAccess *pod_access;
        void *pods; /* for 'pod_access' */
        void (*on_event)(const PodEvent *event, void *userdata);
        admit_daemonset_pod_t admit;           /* or NULL */
        void *event_userdata;                  /* for both callbacks */
        void (*schedule_sync)(void *userdata); /* requests the next pass */
        void *sync_userdata;

        OrphanPods *orphans; /* owned */
        AwakeSince awake;

        /* Data of the current pass. */
        unsigned generation;
        DesiredPods *desired; /* where pods are added; NULL between passes */
        uint64_t now;
        uint64_t requeue_at; /* latest time of the next pass; 0: never */
        ObservedPods observed;
        bool has_changed_sets;  /* sets have changed since overlaps were last checked */
        bool has_peer_affinity; /* at least one decision depends on other pods */
        bool has_failed;        /* out of memory, so pods that are missing from the desired pods
                                 * must not be stopped */
} DaemonSetSyncPass;

/* Takes a snapshot of the pods. 0 or -ENOMEM. */
int sync_pass_observe_pods(DaemonSetSyncPass *pass);

/* Requests the next pass at this time or earlier; 0: not needed. */
void sync_pass_requeue_at(DaemonSetSyncPass *pass, uint64_t when);

/* An event of a DaemonSet. Reasons and messages are those of Kubernetes' controller. */
void record_daemonset_event(const DaemonSetSyncPass *pass, const DaemonSet *set, PodEventKind kind,
                            const char *reason, const char *format, ...) printf_like(5, 6);
