/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The QoS class of a pod (Guaranteed, Burstable, BestEffort), computed from the resources of its
 * containers. Pure. */

#include "agent/model/pod.h"

typedef enum QosClass {
        QOS_GUARANTEED,
        QOS_BURSTABLE,
        QOS_BEST_EFFORT,
        N_QOS_CLASSES,
} QosClass;

extern const char *const qos_class_names[N_QOS_CLASSES];

/* Whether the pod has requests or limits at pod level. */
bool pod_has_resources(const PodSpec *spec);

/* Kubernetes' rule: Guaranteed if every container has CPU and memory limits and requests equal to
 * them; BestEffort if no container has any of these; else Burstable. Pod-level resources
 * replace those of the containers. */
QosClass pod_qos_class(const PodSpec *spec);
