/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The status of this Node, collected from the kernel and the agent whenever it is reported: node
 * info, capacity and allocatable resources, images, runtime handlers. Fields for which the machine
 * provides no data are empty. */

#include "agent/cni/config-directory.h"
#include "agent/csi/csi-manager.h"
#include "agent/devices/device-manager.h"
#include "agent/image/image-store.h"
#include "agent/model/node-status.h"
#include "agent/model/node.h"
#include "agent/node/machine-info.h"

/* The sources of the Node status. */
typedef struct NodeStatusInputs {
        /* The conditions and taints of this node itself; they may change, see
         * apiserver_node_changed(). */
        const NodeLabelsTaints *local;
        const NodeConditions *conditions; /* likewise */
        const EvictionPolicy *eviction;
        const char *hostname;
        const char *address, *other_address; /* 'other_address' is of the other family; NULL:
                                              * none */
        const MachineInfo *machine;
        const CniSettings *network; /* its 'not_ready' may also change */
        int64_t storage;            /* bytes of the file system that pods write to */
        int64_t max_pods;
        uint16_t node_api_port;               /* reported while a process listens on it */
        const NodeReservation *system, *kube; /* the resources that are reserved from pods */
        ImageStore *images;
        const StringMap *runtimes; /* by handler name, without the default one */
        /* Conditions of fetched manifests and of the report; the strings are valid until the next
         * turn of the loop. */
        NodeSources (*list_sources)(void *userdata);
        const DeviceManager *devices; /* NULL: no extended resources */
        const CsiManager *csi;        /* NULL: no volumes of CSI drivers */
        void *userdata;
} NodeStatusInputs;

/* 'not_ready_reason' is NULL if the node is ready, apart from its network; 'refused' are the
 * missing permissions, or NULL. 0 or -ENOMEM; the caller releases it with node_status_done(). */
int collect_node_status(const NodeStatusInputs *inputs, const char *not_ready_reason,
                        const char *refused, NodeStatus *ret);
