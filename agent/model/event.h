/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Something that happened to a pod, to a DaemonSet or to the node, as v1.Event tells it. supervise/
 * and the agent say it, publish/ keeps and counts it, serve/ tells it on. */

#include "agent/model/daemonset.h"

typedef enum PodEventKind {
        POD_EVENT_NORMAL,
        POD_EVENT_WARNING,
        N_POD_EVENT_KINDS,
} PodEventKind;

/* Borrowed, for as long as the telling lasts. */
typedef struct PodEvent {
        const Pod *pod;             /* or NULL: it is the DaemonSet that it happened to … */
        const DaemonSet *daemonset; /* … or, where that is NULL too, the node */
        const char *container;      /* its name, or NULL: the pod as a whole */
        PodEventKind kind;
        const char *reason;  /* one of Kubernetes' words: "Started", "BackOffLimits", … */
        const char *message; /* a sentence for people */
} PodEvent;
