/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The volumes of a pod with content from objects (kubelet: volume manager; ConfigMap, Secret,
 * projected, downwardAPI): they are updated when the objects, or the pod's own labels and
 * annotations, change. */

#include "agent/pods/pod/pod-instance.h"

typedef struct PodVolumes {
        const PodInstance *pod;
        void (*on_retry)(void *userdata); /* a retry of the update is due */
        void *userdata;
        char *error; /* the logged reason why a volume is out of date; or NULL */
        sd_event_source *timer;
        uint64_t delay_usec;
} PodVolumes;

bool pod_has_data_volume(const Pod *pod);

/* Rewrites the volumes that have changed. An error is logged once. A volume with a missing object
 * is retried at the next change; after any other error, such as a full disk, also with a
 * back-off. */
void pod_volumes_update(PodVolumes *volumes);
void pod_volumes_done(PodVolumes *volumes);
