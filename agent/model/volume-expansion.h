/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The expansion of a PersistentVolume on this node (kubelet: operationexecutor.NodeExpander): when
 * it is due, by the claim and the volume, and what is reported in the claim. */

#include "agent/model/object.h"

typedef enum VolumeExpansionStep {
        VOLUME_EXPANSION_NONE,      /* nothing is due on this node */
        VOLUME_EXPANSION_READ_ONLY, /* it is larger, but the pod may only read it */
        VOLUME_EXPANSION_MARK,      /* the claim has to report that it is being expanded */
        VOLUME_EXPANSION_CALL,      /* the driver has to expand it */
} VolumeExpansionStep;

typedef struct VolumeExpansion {
        VolumeExpansionStep step;
        const Quantity *size; /* borrowed from the claim or the volume */
        bool has_status;      /* its stages are in the status of the claim; else it is expanded for
                               * a controller of before Kubernetes 1.34 */
        bool is_reported;     /* the claim has this size already: another node has expanded it */
        bool is_outdated;     /* the claim requests another size meanwhile */
} VolumeExpansion;

/* 'known_bytes' is the size that the volume has on this node. */
VolumeExpansion plan_volume_expansion(const DataObject *claim, const DataObject *volume,
                                      int64_t known_bytes, bool is_read_only);

/* The claim requests, or has been promised, another size than it has. */
bool volume_claim_is_resizing(const VolumeClaim *claim);

typedef enum ClaimUpdateKind {
        CLAIM_EXPANDING,
        CLAIM_EXPANDED,
        CLAIM_EXPANSION_FAILED,     /* it is tried again */
        CLAIM_EXPANSION_INFEASIBLE, /* it is not */
} ClaimUpdateKind;

/* Borrowed. */
typedef struct ClaimUpdate {
        ClaimUpdateKind kind;
        const char *size;    /* of CLAIM_EXPANDED */
        const char *message; /* of a failure */
} ClaimUpdate;

/* How pods have claims of the API server read and written. */
typedef struct ClaimAccess {
        /* Reads the claim again, and its volume if the claim has changed. Changes are reported to
         * the pods that refer to them. */
        void (*refresh)(const DataObject *claim, void *userdata);
        /* Writes the status of the claim, later. An update replaces an earlier one. */
        void (*update)(const DataObject *claim, const ClaimUpdate *update, void *userdata);
        void *userdata;
} ClaimAccess;
