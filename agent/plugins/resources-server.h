/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The responses of the pod resources API (PodResourcesLister v1) as messages. */

#include "agent/devices/device-manager.h"
#include "common/buffer.h"

typedef struct PodResourcesList PodResourcesList;

/* NULL: out of memory. */
PodResourcesList *pod_resources_list_new(const DeviceManager *devices);
PodResourcesList *pod_resources_list_free(PodResourcesList *list);
DEFINE_CLEANUP(PodResourcesList *, pod_resources_list_free)

/* Adds a pod with its sidecars and containers, and their devices. 0 or -ENOMEM. */
int pod_resources_list_add(PodResourcesList *list, const Pod *pod);

/* The response to List; with a single pod, also the response to Get. 0 or -errno. */
int pod_resources_print_list(const PodResourcesList *list, Buffer *ret);

/* The response to GetAllocatableResources: all healthy devices. 0 or -errno. */
int pod_resources_print_allocatable(const DeviceManager *devices, Buffer *ret);
