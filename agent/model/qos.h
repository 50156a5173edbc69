/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The QoS class of a pod, computed from the resources of its containers. Pure. */

#include "agent/model/pod.h"

typedef enum QosClass {
        QOS_GUARANTEED,
        QOS_BURSTABLE,
        QOS_BEST_EFFORT,
        N_QOS_CLASSES,
} QosClass;

extern const char *const qos_class_names[N_QOS_CLASSES];

/* Something is asked for or limited for all containers together. */
bool pod_has_resources(const PodSpec *spec);

/* Kubernetes' rule: Guaranteed where every container has cpu and memory limits and requests equal
 * to them, BestEffort where none has any of either, else Burstable. What the pod says of all its
 * containers together is looked at in their place. */
QosClass pod_qos_class(const PodSpec *spec);
