/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* core/v1 PersistentVolumeClaim and PersistentVolume, as far as a node needs them: the volume to
 * which a claim is bound, and where it is on the node; and the objects of its CSI driver. They come
 * only from an API server. */

#include "agent/model/pod.h"

typedef enum VolumeMode {
        VOLUME_MODE_UNSET,
        VOLUME_MODE_FILESYSTEM,
        VOLUME_MODE_BLOCK,
        N_VOLUME_MODES,
} VolumeMode;

extern const char *const volume_mode_names[N_VOLUME_MODES];

typedef struct VolumeSize {
        Quantity storage; /* bytes */
} VolumeSize;

typedef struct VolumeClaimResources {
        VolumeSize requests;
} VolumeClaimResources;

typedef struct VolumeClaimSpec {
        char *volume_name; /* NULL: it is not bound yet */
        char **access_modes;
        VolumeClaimResources resources;
} VolumeClaimSpec;

/* The progress of an expansion: "NodeResizePending". */
typedef struct VolumeResizeStatus {
        char *storage; /* NULL: there is none */
} VolumeResizeStatus;

typedef struct VolumeClaimStatus {
        char *phase; /* "Bound" */
        VolumeSize capacity;
        VolumeSize allocated;             /* the size of an expansion, from newer controllers */
        VolumeResizeStatus resize_status; /* likewise */
} VolumeClaimStatus;

typedef struct VolumeClaim {
        VolumeClaimSpec spec;
        VolumeClaimStatus status;
} VolumeClaim;

bool volume_claim_is_bound(const VolumeClaim *claim);

/* A directory on one node. */
typedef struct LocalVolumeSource {
        char *path;
} LocalVolumeSource;

/* The claim to which a volume is bound. */
typedef struct ClaimReference {
        char *namespace;
        char *name;
        char *uid;
} ClaimReference;

typedef struct VolumeNodeAffinity {
        NodeSelector *required; /* or NULL */
} VolumeNodeAffinity;

/* A Secret in any namespace. */
typedef struct SecretReference {
        char *name;
        char *namespace;
} SecretReference;

/* A volume of a CSI driver. */
typedef struct CsiPersistentVolumeSource {
        char *driver;
        char *handle;
        char *fs_type;
        StringMap attributes;
        SecretReference *stage_secret;   /* or NULL */
        SecretReference *publish_secret; /* or NULL */
        SecretReference *expand_secret;  /* or NULL */
} CsiPersistentVolumeSource;

typedef enum FsGroupPolicy {
        FS_GROUP_POLICY_UNSET,
        FS_GROUP_POLICY_BY_TYPE, /* ReadWriteOnceWithFSType, the default */
        FS_GROUP_POLICY_FILE,
        FS_GROUP_POLICY_NONE,
        N_FS_GROUP_POLICIES,
} FsGroupPolicy;

/* storage.k8s.io/v1 CSIDriver. */
typedef struct CsiDriverObject {
        OptionalBool attach_required; /* unset: true */
        bool pod_info_on_mount;
        char **lifecycle_modes; /* NULL: only Persistent */
        FsGroupPolicy fs_group_policy;
        bool requires_republish;
        LIST_OF(TokenProjection) token_requests; /* without paths */
        bool has_tokens_in_secrets;
        bool has_selinux_mount; /* its volumes can be mounted with an SELinux context */
} CsiDriverObject;

/* storage.k8s.io/v1 VolumeAttachment. */
typedef struct VolumeAttachment {
        bool is_attached;
        StringMap metadata; /* for the driver on the node */
} VolumeAttachment;

/* attachRequired; true if it is not set. */
bool csi_driver_must_attach(const CsiDriverObject *driver);

/* At most one source is not NULL; if all are NULL, the volume is of another kind. */
typedef struct PersistentVolume {
        HostPathVolumeSource *host_path;
        LocalVolumeSource *local;
        NfsVolumeSource *nfs;
        CsiPersistentVolumeSource *csi;
        ClaimReference *claim;
        VolumeNodeAffinity *node_affinity; /* the nodes from which it can be reached; NULL: all */
        VolumeMode mode;
        VolumeSize capacity;
        char **mount_options; /* or NULL */
        char **access_modes;
} PersistentVolume;
