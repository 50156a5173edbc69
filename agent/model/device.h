/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Devices as extended resources: what a provider lists, what a container gets of them, and what the
 * node reports. Plain data; strings are owned. */

#include "agent/model/values.h"

typedef struct Device {
        char *id;
        bool is_healthy;
        bool is_absent;     /* it can be allocated although it is not there */
        IntList numa_nodes; /* empty: none is known */
} Device;

typedef LIST_OF(Device) DeviceList;

void device_list_done(DeviceList *list);

typedef struct DeviceMount {
        char *container_path;
        char *host_path;
        bool is_read_only;
} DeviceMount;

typedef struct DeviceFile {
        char *container_path;
        char *host_path;
        char *permissions; /* of the device cgroup: "rwm" or a part of it */
        bool is_live;      /* it may come and go while the container runs */
} DeviceFile;

/* The additions of devices to the OCI configuration of a container
 * (v1beta1.ContainerAllocateResponse). */
typedef struct DeviceEdits {
        StringMap env;
        LIST_OF(DeviceMount) mounts;
        LIST_OF(DeviceFile) files;
        StringMap annotations;
        char **cdi_devices; /* qualified names: "vendor.com/class=name" */
} DeviceEdits;

void device_edits_done(DeviceEdits *edits);

/* Adds those that 'edits' does not have: of an equal variable, path in the container, annotation or
 * CDI name the first one counts, as in the kubelet. 0 or -ENOMEM. */
int device_edits_merge(DeviceEdits *edits, const DeviceEdits *more);

/* A resource in capacity and allocatable of the node. */
typedef struct NodeDevices {
        char *name;          /* "example.com/gpu" */
        int64_t capacity;    /* all devices */
        int64_t allocatable; /* the healthy ones */
} NodeDevices;

typedef LIST_OF(NodeDevices) NodeDevicesList;

void node_devices_list_done(NodeDevicesList *list);

/* One device that a container has (v1.ResourceHealth), and those of a resource
 * (v1.ResourceStatus). */
typedef struct ResourceHealth {
        char *id;
        bool is_unhealthy;
} ResourceHealth;

typedef struct ResourceStatus {
        char *name;
        LIST_OF(ResourceHealth) resources;
} ResourceStatus;

typedef LIST_OF(ResourceStatus) ResourceStatusList;

void resource_status_list_done(ResourceStatusList *list);
