/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The desired state of the node: the set of pods that should run, each with its source. Sources add
 * to it; diff_desired_pods() (desired/) compares it with the actual pods, which are also described
 * here. Plain data: it does not start or stop anything. */

#include "agent/model/daemonset.h"
#include "agent/model/pod-source.h"

typedef struct DesiredPod {
        PodSource source; /* its name is borrowed */
        const Pod *pod;   /* borrowed, or 'owned' */
        Pod *owned;
        Pod *resolved; /* 'pod' with the values of its classes, from which it borrows; or NULL */
} DesiredPod;

typedef struct DesiredPods {
        LIST_OF(DesiredPod) pods; /* sorted by namespace and name, which are unique */
        bool is_incomplete;       /* a source could not add all of its pods */
} DesiredPods;

/* Borrowed memory is used until the set is done. 1: the pod was added; 0: a pod with the same name
 * had already been added; -ENOMEM: the set is incomplete. */
int desired_pods_add(DesiredPods *desired, const PodSource *source, const Pod *pod);

/* The same, but takes ownership of the pod, even on failure. */
int desired_pods_add_take(DesiredPods *desired, const PodSource *source, Pod *pod);

/* The first pod with this UID, regardless of its name, or NULL; valid until the next pod is
 * added. */
const DesiredPod *desired_pods_find_uid(const DesiredPods *desired, const char *uid);

/* The pod with that name, or NULL; valid until the next pod is added. */
DesiredPod *desired_pods_find(const DesiredPods *desired, const char *namespace, const char *name);
void desired_pods_done(DesiredPods *desired);

/* A DaemonSet that this node evaluates. */
typedef struct DesiredDaemonSet {
        PodSource source;     /* its name is borrowed */
        const DaemonSet *set; /* borrowed */
} DesiredDaemonSet;

typedef LIST_OF(DesiredDaemonSet) DesiredDaemonSets;

/* 0 or -ENOMEM. */
int desired_daemonsets_add(DesiredDaemonSets *sets, const PodSource *source, const DaemonSet *set);
void desired_daemonsets_done(DesiredDaemonSets *sets);

/* The pods under one namespace/name. Everything except the reason is borrowed. */
typedef struct ActualPod {
        const Pod *pod;                    /* the pod that has a worker, or NULL */
        const PodSource *source;           /* of 'pod' */
        bool is_terminating;               /* it is already being stopped */
        bool removal_fails;                /* 'pod' has stopped, but cannot be removed */
        bool is_outdated;                  /* some of its containers still run from an older spec */
        const Pod *successor;              /* the pod that follows it, or that is about to start; or
                                            * NULL */
        const PodSource *successor_source; /* of 'successor' */
        char *stop_reason; /* the reason why its source no longer desires 'pod'; NULL: not known */
} ActualPod;

typedef LIST_OF(ActualPod) ActualPods;

/* 'pod' or, if there is none, 'successor'; at least one of them exists. */
const ObjectMeta *actual_pod_metadata(const ActualPod *actual);

/* The pods with that name; NULL: none. */
const ActualPod *actual_pods_find(const ActualPods *actual, const ObjectMeta *metadata);

/* Whether the pod runs and its whole spec is applied. False for NULL. */
bool actual_pod_is_current(const ActualPod *actual);
void actual_pods_done(ActualPods *actual);
