/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Devices as extended resources: the devices that a provider lists, their additions to a container,
 * and the resources that the node reports. Plain data; strings are owned. */

#include "agent/model/values.h"

typedef struct Device {
        char *id;
        bool is_healthy;
        bool is_absent;     /* it can be allocated although it is absent */
        IntList numa_nodes; /* empty: unknown */
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
        char *permissions; /* for the device cgroup: "rwm" or a part of it */
        bool is_live;      /* hot-plug: it may appear and disappear while the container runs */
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

/* Adds the entries that 'edits' does not have. As in the kubelet, the first of several equal
 * variables, paths in the container, annotations or CDI names is used. 0 or -ENOMEM. */
int device_edits_merge(DeviceEdits *edits, const DeviceEdits *more);

/* A resource in the node's capacity and allocatable. */
typedef struct NodeDevices {
        char *name;          /* "example.com/gpu" */
        int64_t capacity;    /* all devices */
        int64_t allocatable; /* the number of healthy ones */
} NodeDevices;

typedef LIST_OF(NodeDevices) NodeDevicesList;

void node_devices_list_done(NodeDevicesList *list);

/* One device of a container (v1.ResourceHealth), and those of a resource (v1.ResourceStatus). */
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
