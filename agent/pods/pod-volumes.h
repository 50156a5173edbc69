/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The volumes of a pod that are made of objects (kubelet: volume manager; ConfigMap, Secret,
 * projected, downwardAPI): they follow changes of the objects, and of the pod's own labels and
 * annotations. */

#include "agent/pods/pod-instance.h"

typedef struct PodVolumes {
        char *error; /* why a volume is out of date, as it was logged; or NULL */
} PodVolumes;

bool pod_has_data_volume(const Pod *pod);

/* A volume is a claim, which the API server binds to a PersistentVolume. */
bool pod_has_claim(const Pod *pod);

/* Rewrites the volumes that have changed. An error is logged once; each later change tries again.
 */
void pod_volumes_update(PodVolumes *volumes, const PodInstance *pod);
void pod_volumes_done(PodVolumes *volumes);
