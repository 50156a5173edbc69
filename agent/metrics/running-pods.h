/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The kubelet's /runningpods/: the pods with running containers as a v1.PodList. */

#include "agent/model/pod.h"
#include "agent/model/status.h"
#include "common/macros.h"

typedef struct RunningPods RunningPods;

/* NULL: out of memory. */
RunningPods *running_pods_new(void);
RunningPods *running_pods_free(RunningPods *pods);
DEFINE_CLEANUP(RunningPods *, running_pods_free)

/* Adds a pod, unless none of its containers is running. 'running_pods' is the RunningPods. 0 or
 * -ENOMEM.
 */
int running_pods_add(const Pod *pod, const PodStatus *status, void *running_pods);

/* The JSON, which the caller frees; NULL: out of memory. */
char *running_pods_format(const RunningPods *pods);
