/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* An event (v1.Event) about a pod, a DaemonSet, a claim or the node. pods/ and the wiring record
 * events, metrics/ stores and counts them, http/ and apiserver/ publish them. */

#include "agent/model/daemonset.h"
#include "agent/model/object.h"

typedef enum PodEventKind {
        POD_EVENT_NORMAL,
        POD_EVENT_WARNING,
        N_POD_EVENT_KINDS,
} PodEventKind;

/* Borrowed for the duration of the call. */
typedef struct PodEvent {
        const Pod *pod;             /* NULL: the event is about the DaemonSet … */
        const DaemonSet *daemonset; /* … NULL: about the PersistentVolumeClaim … */
        const DataObject *claim;    /* … if all are NULL: about the node */
        const char *container;      /* container name; NULL: the pod as a whole */
        PodEventKind kind;
        const char *reason;  /* a reason of the kubelet: "Started", "BackOffLimits", … */
        const char *message; /* a human-readable message */
} PodEvent;
