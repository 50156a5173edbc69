/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The expansion of a PersistentVolume on this node (kubelet: operationexecutor.NodeExpander): when
 * it is needed, according to claim and volume, and what the claim's status reports. */

#include "agent/model/object.h"

typedef enum VolumeExpansionStep {
        VOLUME_EXPANSION_NONE,      /* nothing to do on this node */
        VOLUME_EXPANSION_READ_ONLY, /* the volume is larger, but the pod may only read it */
        VOLUME_EXPANSION_MARK,      /* the claim must report that the expansion is in progress */
        VOLUME_EXPANSION_CALL,      /* the driver must expand it */
} VolumeExpansionStep;

typedef struct VolumeExpansion {
        VolumeExpansionStep step;
        const Quantity *size; /* borrowed from the claim or the volume */
        bool has_status;      /* the claim's status reports its stages; otherwise the controller is
                               * older than Kubernetes 1.34 */
        bool is_reported;     /* the claim already has this size: another node has expanded the
                               * volume */
        bool is_outdated;     /* the claim now requests another size */
} VolumeExpansion;

/* 'known_bytes' is the size of the volume on this node. */
VolumeExpansion plan_volume_expansion(const DataObject *claim, const DataObject *volume,
                                      int64_t known_bytes, bool is_read_only);

/* Whether the claim requests or has been granted a size other than its current one. */
bool volume_claim_is_resizing(const VolumeClaim *claim);

typedef enum ClaimUpdateKind {
        CLAIM_EXPANDING,
        CLAIM_EXPANDED,
        CLAIM_EXPANSION_FAILED,     /* retried later */
        CLAIM_EXPANSION_INFEASIBLE, /* not retried */
} ClaimUpdateKind;

/* Borrowed. */
typedef struct ClaimUpdate {
        ClaimUpdateKind kind;
        const char *size;    /* of CLAIM_EXPANDED */
        const char *message; /* of a failure */
} ClaimUpdate;

/* How pods read and write claims of the API server. */
typedef struct ClaimAccess {
        /* Reads the claim again, and its volume if the claim has changed. Pods that refer to them
         * are notified of changes. */
        void (*refresh)(const DataObject *claim, void *userdata);
        /* Writes the status of the claim later. An update replaces an earlier one that is still
         * waiting. */
        void (*update)(const DataObject *claim, const ClaimUpdate *update, void *userdata);
        void *userdata;
} ClaimAccess;
