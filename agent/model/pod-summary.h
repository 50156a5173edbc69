/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The line of a pod in `get pods`, according to kubectl's rules. Pure. */

#include "agent/model/age.h"
#include "common/json-text.h"

typedef struct PodSummary {
        const char *namespace; /* borrowed from the pod, as are the other pointers */
        const char *name;
        char ready[32];
        char status[128];
        char restarts[DURATION_SIZE + 32];
        char age[DURATION_SIZE];
        const char *ip;
        const char *node;
        const char *nominated_node;
        char readiness_gates[32];
        const char *source; /* not in kubectl: the pod's source */
} PodSummary;

/* Fills it from a v1.Pod, for the time 'now_usec' (realtime). Missing values are "<none>" or
 * "<unknown>", as in kubectl. */
void pod_summarize(const json_t *pod, uint64_t now_usec, PodSummary *ret);
