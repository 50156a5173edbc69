/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Device nodes in the /dev of a running container. To be called in its mount namespace. Links in
 * the container are not followed. */

#include "agent/shim/device-rules.h"

typedef struct DeviceNodes {
        int dev_fd;     /* the container's /dev */
        bool are_bound; /* in a user namespace: the node's device nodes are bind-mounted */
        bool are_nodes; /* this is the node's own /dev, in which device nodes appear and disappear
                         * without the shim */
} DeviceNodes;

/* Clones the mount of a device's node, not attached yet, for device_node_create(). To be called in
 * the mount namespace of the node. A descriptor or -errno. */
int device_node_clone(const LiveDevice *device);

/* Opens /dev in the mount namespace of this process; if 'are_bound', the process creates files as
 * the owner of /dev from then on. 'host_dev' is the device number of the file system of the node's
 * /dev. 0 or -errno; the caller closes 'ret->dev_fd'. */
int device_nodes_open(dev_t host_dev, bool are_bound, DeviceNodes *ret);

/* Creates the node, or replaces a node for another device. 'clone_fd' is used if nodes are bound. 0
 * or -errno. */
int device_node_create(const DeviceNodes *nodes, const LiveDevice *device, int clone_fd);

/* Removes the node, unless it is now a node for another device, and directories that become empty.
 * 0 or -errno. */
int device_node_remove(const DeviceNodes *nodes, const LiveDevice *device);
