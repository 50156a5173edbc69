/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The responses of a CSI driver on this node. Plain data; strings are owned. */

#include "agent/model/values.h"

/* csi.v1.NodeServiceCapability.RPC.Type */
typedef enum CsiCapability {
        CSI_STAGE_UNSTAGE_VOLUME = 1,
        CSI_GET_VOLUME_STATS = 2,
        CSI_EXPAND_VOLUME = 3,
        CSI_VOLUME_CONDITION = 4,
        CSI_SINGLE_NODE_MULTI_WRITER = 5,
        CSI_VOLUME_MOUNT_GROUP = 6,
} CsiCapability;

/* csi.v1.VolumeUsage.Unit */
typedef enum CsiUsageUnit {
        CSI_USAGE_BYTES = 1,
        CSI_USAGE_INODES = 2,
} CsiUsageUnit;

typedef struct CsiUsage {
        int64_t available;
        int64_t total;
        int64_t used;
        int64_t unit;
} CsiUsage;

/* The response to NodeGetInfo, NodeGetCapabilities or NodeGetVolumeStats; the members of the others
 * are empty. */
typedef struct CsiNodeAnswer {
        char *node_id;
        int64_t max_volumes; /* 0: no limit */
        StringMap segments;  /* of the node's topology */
        IntList capabilities;
        LIST_OF(CsiUsage) usages;
        bool is_abnormal; /* the volume's condition is abnormal */
} CsiNodeAnswer;

typedef struct CsiVersion {
        unsigned parts[3];
} CsiVersion;

/* A registered driver. */
typedef struct CsiNodeDriver {
        char *name;
        char *endpoint;
        CsiVersion version;
        unsigned capabilities; /* a mask, from its last response */
        bool has_capabilities; /* it has responded */
        char *node_id;
        int64_t max_volumes; /* at most INT32_MAX, as in a CSINode, and like in the kubelet */
        StringMap segments;  /* sorted */
} CsiNodeDriver;

typedef LIST_OF(CsiNodeDriver) CsiNodeDriverList;
