/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Device nodes in the /dev of a running container. To be called in its mount namespace. No link in
 * the container is followed. */

#include "agent/shim/device-rules.h"

typedef struct DeviceNodes {
        int dev_fd;     /* the container's /dev */
        bool are_bound; /* in a user namespace: nodes of the node are mounted */
        bool are_nodes; /* it is the node's own /dev, where nodes come and go by themselves */
} DeviceNodes;

/* A mount of the node of a device, not attached yet, for device_node_create(). To be called in the
 * mount namespace of the node. A descriptor or -errno. */
int device_node_clone(const LiveDevice *device);

/* Opens /dev of the mount namespace that the process is in; with 'are_bound', the process creates
 * files as the owner of /dev from then on. 'host_dev' is the file system of the
 * node's /dev. 0 or -errno; the caller closes 'ret->dev_fd'. */
int device_nodes_open(dev_t host_dev, bool are_bound, DeviceNodes *ret);

/* Creates the node, or replaces one of another device. 'clone_fd' is used if nodes are bound. 0 or
 * -errno. */
int device_node_create(const DeviceNodes *nodes, const LiveDevice *device, int clone_fd);

/* Removes the node, unless it is one of another device by now, and directories that are empty then.
 * 0 or -errno. */
int device_node_remove(const DeviceNodes *nodes, const LiveDevice *device);
