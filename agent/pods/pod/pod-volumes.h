/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The volumes of a pod that are made of objects (kubelet: volume manager; ConfigMap, Secret,
 * projected, downwardAPI): they follow changes of the objects, and of the pod's own labels and
 * annotations. */

#include "agent/pods/pod/pod-instance.h"

typedef struct PodVolumes {
        const PodInstance *pod;
        void (*on_retry)(void *userdata); /* the update is due again */
        void *userdata;
        char *error; /* why a volume is out of date, as it was logged; or NULL */
        sd_event_source *timer;
        uint64_t delay_usec;
} PodVolumes;

bool pod_has_data_volume(const Pod *pod);

/* Rewrites the volumes that have changed. An error is logged once. A volume with a missing object
 * is tried again at the next change, and after any other error, such as a full disk, also with a
 * back-off. */
void pod_volumes_update(PodVolumes *volumes);
void pod_volumes_done(PodVolumes *volumes);
