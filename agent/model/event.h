/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Something that happened to a pod, as v1.Event tells it. supervise/ says it, publish/ keeps and
 * counts it, serve/ tells it on. */

#include "agent/model/pod.h"

typedef enum PodEventKind {
        POD_EVENT_NORMAL,
        POD_EVENT_WARNING,
        N_POD_EVENT_KINDS,
} PodEventKind;

/* Borrowed, for as long as the telling lasts. */
typedef struct PodEvent {
        const Pod *pod;
        const char *container; /* its name, or NULL: the pod as a whole */
        PodEventKind kind;
        const char *reason;  /* one of the kubelet's words: "Started", "BackOff", … */
        const char *message; /* a sentence for people */
} PodEvent;
