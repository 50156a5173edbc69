/* SPDX-License-Identifier: Apache-2.0 */

/* The tables of PersistentVolumeClaim, PersistentVolume, CSIDriver and VolumeAttachment. Missing
 * fields are ignored: these objects come only from an API server. */

#include "agent/model/names.h"
#include "agent/model/object.h"

const char *const volume_mode_names[N_VOLUME_MODES] = {
        [VOLUME_MODE_FILESYSTEM] = "Filesystem",
        [VOLUME_MODE_BLOCK] = "Block",
};

bool volume_claim_is_bound(const VolumeClaim *claim) {
        static const char bound[] = "Bound";

        return claim->spec.volume_name && streq(strna(claim->status.phase), bound);
}

bool csi_driver_must_attach(const CsiDriverObject *driver) {
        return !driver->attach_required.is_set || driver->attach_required.value;
}

/* clang-format off */
static const Field volume_size_fields[] = {
        FIELD("storage",                QUANTITY,   VolumeSize, storage),
};
static const Schema volume_size_schema = SCHEMA(VolumeSize, volume_size_fields);

static const Field claim_resources_fields[] = {
        FIELD("requests",               OBJECT,     VolumeClaimResources, requests,
              .schema = &volume_size_schema),
};
static const Schema claim_resources_schema = {
        .name = "VolumeResourceRequirements", .size = sizeof(VolumeClaimResources),
        .fields = claim_resources_fields, .n_fields = N_ELEMENTS(claim_resources_fields),
};

static const Field claim_spec_fields[] = {
        FIELD("volumeName",             STRING,     VolumeClaimSpec, volume_name,
              .check = check_dns_subdomain),
        FIELD("accessModes",            STRINGS,    VolumeClaimSpec, access_modes),
        FIELD("resources",              OBJECT,     VolumeClaimSpec, resources,
              .schema = &claim_resources_schema),
};
static const Schema claim_spec_schema = {
        .name = "PersistentVolumeClaimSpec", .size = sizeof(VolumeClaimSpec),
        .fields = claim_spec_fields, .n_fields = N_ELEMENTS(claim_spec_fields),
};

static const Field resize_status_fields[] = {
        FIELD("storage",                STRING,     VolumeResizeStatus, storage),
};
static const Schema resize_status_schema = SCHEMA(VolumeResizeStatus, resize_status_fields);

static const Field claim_status_fields[] = {
        FIELD("phase",                  STRING,     VolumeClaimStatus, phase),
        FIELD("capacity",               OBJECT,     VolumeClaimStatus, capacity,
              .schema = &volume_size_schema),
        FIELD("allocatedResources",     OBJECT,     VolumeClaimStatus, allocated,
              .schema = &volume_size_schema),
        FIELD("allocatedResourceStatuses", OBJECT,  VolumeClaimStatus, resize_status,
              .schema = &resize_status_schema),
};
static const Schema claim_status_schema = {
        .name = "PersistentVolumeClaimStatus", .size = sizeof(VolumeClaimStatus),
        .fields = claim_status_fields, .n_fields = N_ELEMENTS(claim_status_fields),
};

static const Field claim_fields[] = {
        IGNORED("kind"),
        IGNORED("apiVersion"),
        FIELD("metadata",               OBJECT,     DataObject, metadata, .is_required = true,
              .schema = &object_meta_schema),
        FIELD("spec",                   OBJECT,     DataObject, claim.spec,
              .schema = &claim_spec_schema),
        FIELD("status",                 OBJECT,     DataObject, claim.status,
              .schema = &claim_status_schema),
};
const Schema persistent_volume_claim_schema = {
        .name = "PersistentVolumeClaim", .size = sizeof(DataObject),
        .fields = claim_fields, .n_fields = N_ELEMENTS(claim_fields),
};

static const Field local_volume_fields[] = {
        FIELD("path",                   STRING,     LocalVolumeSource, path, .is_required = true,
              .check = check_host_path),
};
static const Schema local_volume_schema = SCHEMA(LocalVolumeSource, local_volume_fields);

static const Field secret_reference_fields[] = {
        FIELD("name",                   STRING,     SecretReference, name),
        FIELD("namespace",              STRING,     SecretReference, namespace),
};
static const Schema secret_reference_schema = SCHEMA(SecretReference, secret_reference_fields);

static const Field csi_persistent_volume_fields[] = {
        FIELD("driver",                 STRING,     CsiPersistentVolumeSource, driver,
              .is_required = true),
        FIELD("volumeHandle",           STRING,     CsiPersistentVolumeSource, handle,
              .is_required = true),
        FIELD("fsType",                 STRING,     CsiPersistentVolumeSource, fs_type),
        FIELD("volumeAttributes",       STRING_MAP, CsiPersistentVolumeSource, attributes),
        FIELD("nodeStageSecretRef",     OPTIONAL,   CsiPersistentVolumeSource, stage_secret,
              .schema = &secret_reference_schema),
        FIELD("nodePublishSecretRef",   OPTIONAL,   CsiPersistentVolumeSource, publish_secret,
              .schema = &secret_reference_schema),
        FIELD("nodeExpandSecretRef",    OPTIONAL,   CsiPersistentVolumeSource, expand_secret,
              .schema = &secret_reference_schema),
};
static const Schema csi_persistent_volume_schema = {
        .name = "CSIPersistentVolumeSource", .size = sizeof(CsiPersistentVolumeSource),
        .fields = csi_persistent_volume_fields, .n_fields = N_ELEMENTS(csi_persistent_volume_fields),
};

static const Field claim_reference_fields[] = {
        FIELD("namespace",              STRING,     ClaimReference, namespace),
        FIELD("name",                   STRING,     ClaimReference, name),
        FIELD("uid",                    STRING,     ClaimReference, uid),
};
static const Schema claim_reference_schema = {
        .name = "ObjectReference", .size = sizeof(ClaimReference),
        .fields = claim_reference_fields, .n_fields = N_ELEMENTS(claim_reference_fields),
};

static const Field volume_node_affinity_fields[] = {
        FIELD("required",               OPTIONAL,   VolumeNodeAffinity, required,
              .schema = &node_selector_schema),
};
static const Schema volume_node_affinity_schema =
        SCHEMA(VolumeNodeAffinity, volume_node_affinity_fields);

static const Field volume_spec_fields[] = {
        FIELD("hostPath",               OPTIONAL,   PersistentVolume, host_path,
              .schema = &host_path_schema),
        FIELD("local",                  OPTIONAL,   PersistentVolume, local,
              .schema = &local_volume_schema),
        FIELD("nfs",                    OPTIONAL,   PersistentVolume, nfs,
              .schema = &nfs_volume_schema),
        FIELD("csi",                    OPTIONAL,   PersistentVolume, csi,
              .schema = &csi_persistent_volume_schema),
        FIELD("claimRef",               OPTIONAL,   PersistentVolume, claim,
              .schema = &claim_reference_schema),
        FIELD("nodeAffinity",           OPTIONAL,   PersistentVolume, node_affinity,
              .schema = &volume_node_affinity_schema),
        FIELD("volumeMode",             ENUM,       PersistentVolume, mode,
              ENUM_NAMES(volume_mode_names), .ignores_other = true),
        FIELD("capacity",               OBJECT,     PersistentVolume, capacity,
              .schema = &volume_size_schema),
        FIELD("mountOptions",           STRINGS,    PersistentVolume, mount_options),
        FIELD("accessModes",            STRINGS,    PersistentVolume, access_modes),
};
static const Schema volume_spec_schema = {
        .name = "PersistentVolumeSpec", .size = sizeof(PersistentVolume),
        .fields = volume_spec_fields, .n_fields = N_ELEMENTS(volume_spec_fields),
};

static const Field volume_fields[] = {
        IGNORED("kind"),
        IGNORED("apiVersion"),
        FIELD("metadata",               OBJECT,     DataObject, metadata, .is_required = true,
              .schema = &object_meta_schema),
        FIELD("spec",                   OBJECT,     DataObject, volume,
              .schema = &volume_spec_schema),
        IGNORED("status"),
};
const Schema persistent_volume_schema = {
        .name = "PersistentVolume", .size = sizeof(DataObject),
        .fields = volume_fields, .n_fields = N_ELEMENTS(volume_fields),
};

static const char *const fs_group_policy_names[N_FS_GROUP_POLICIES] = {
        [FS_GROUP_POLICY_BY_TYPE] = "ReadWriteOnceWithFSType",
        [FS_GROUP_POLICY_FILE] = "File",
        [FS_GROUP_POLICY_NONE] = "None",
};

static const Field token_request_fields[] = {
        FIELD("audience",               STRING,     TokenProjection, audience),
        FIELD("expirationSeconds",      INT,        TokenProjection, expiration_seconds),
};
static const Schema token_request_schema = {
        .name = "TokenRequest", .size = sizeof(TokenProjection),
        .fields = token_request_fields, .n_fields = N_ELEMENTS(token_request_fields),
};

static const Field csi_driver_spec_fields[] = {
        FIELD("attachRequired",         OPTIONAL_BOOL, CsiDriverObject, attach_required),
        FIELD("podInfoOnMount",         BOOL,       CsiDriverObject, pod_info_on_mount),
        FIELD("volumeLifecycleModes",   STRINGS,    CsiDriverObject, lifecycle_modes),
        FIELD("fsGroupPolicy",          ENUM,       CsiDriverObject, fs_group_policy,
              ENUM_NAMES(fs_group_policy_names), .ignores_other = true),
        FIELD("requiresRepublish",      BOOL,       CsiDriverObject, requires_republish),
        FIELD("tokenRequests",          LIST,       CsiDriverObject, token_requests,
              .schema = &token_request_schema),
        FIELD("serviceAccountTokenInSecrets", BOOL, CsiDriverObject, has_tokens_in_secrets),
        FIELD("seLinuxMount",           BOOL,       CsiDriverObject, has_selinux_mount),
};
static const Schema csi_driver_spec_schema = {
        .name = "CSIDriverSpec", .size = sizeof(CsiDriverObject),
        .fields = csi_driver_spec_fields, .n_fields = N_ELEMENTS(csi_driver_spec_fields),
};

static const Field csi_driver_fields[] = {
        IGNORED("kind"),
        IGNORED("apiVersion"),
        FIELD("metadata",               OBJECT,     DataObject, metadata, .is_required = true,
              .schema = &object_meta_schema),
        FIELD("spec",                   OBJECT,     DataObject, csi_driver,
              .schema = &csi_driver_spec_schema),
};
const Schema csi_driver_schema = {
        .name = "CSIDriver", .size = sizeof(DataObject),
        .fields = csi_driver_fields, .n_fields = N_ELEMENTS(csi_driver_fields),
};

static const Field attachment_status_fields[] = {
        FIELD("attached",               BOOL,       VolumeAttachment, is_attached),
        FIELD("attachmentMetadata",     STRING_MAP, VolumeAttachment, metadata),
};
static const Schema attachment_status_schema = {
        .name = "VolumeAttachmentStatus", .size = sizeof(VolumeAttachment),
        .fields = attachment_status_fields, .n_fields = N_ELEMENTS(attachment_status_fields),
};

static const Field attachment_fields[] = {
        IGNORED("kind"),
        IGNORED("apiVersion"),
        FIELD("metadata",               OBJECT,     DataObject, metadata, .is_required = true,
              .schema = &object_meta_schema),
        IGNORED("spec"),
        FIELD("status",                 OBJECT,     DataObject, attachment,
              .schema = &attachment_status_schema),
};
const Schema volume_attachment_schema = {
        .name = "VolumeAttachment", .size = sizeof(DataObject),
        .fields = attachment_fields, .n_fields = N_ELEMENTS(attachment_fields),
};
/* clang-format on */
