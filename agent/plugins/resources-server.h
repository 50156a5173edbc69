/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The answers of the pod resources (PodResourcesLister v1) as messages. */

#include "agent/devices/device-manager.h"
#include "common/buffer.h"

typedef struct PodResourcesList PodResourcesList;

/* NULL: out of memory. */
PodResourcesList *pod_resources_list_new(const DeviceManager *devices);
PodResourcesList *pod_resources_list_free(PodResourcesList *list);
DEFINE_CLEANUP(PodResourcesList *, pod_resources_list_free)

/* Adds a pod with its sidecars and containers, and their devices. 0 or -ENOMEM. */
int pod_resources_list_add(PodResourcesList *list, const Pod *pod);

/* The answer to List; with one pod it is the answer to Get as well. 0 or -errno. */
int pod_resources_print_list(const PodResourcesList *list, Buffer *ret);

/* The answer to GetAllocatableResources: all healthy devices. 0 or -errno. */
int pod_resources_print_allocatable(const DeviceManager *devices, Buffer *ret);
