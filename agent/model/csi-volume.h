/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A volume of a pod that a CSI driver mounts, resolved: by itself, or by its claim and the
 * PersistentVolume of that. And the paths that drivers expect of a kubelet. */

#include "agent/model/object.h"
#include "common/hash.h"

typedef enum CsiAccess {
        CSI_ACCESS_READ_WRITE_ONCE,
        CSI_ACCESS_READ_ONLY_MANY,
        CSI_ACCESS_READ_WRITE_MANY,
        CSI_ACCESS_READ_WRITE_ONCE_POD,
} CsiAccess;

/* All but the handle, the tokens and the label is borrowed. */
typedef struct CsiVolume {
        const char *name; /* of the PersistentVolume; of the volume in the pod if it is ephemeral */
        const char *driver;
        char *handle;
        const char *fs_type;              /* NULL: the driver's default */
        const StringMap *attributes;      /* or NULL */
        const StringMap *publish_context; /* of its VolumeAttachment; NULL: it is not attached */
        char *const *mount_options;       /* or NULL */
        CsiAccess access;
        bool is_read_only;
        bool is_ephemeral;
        bool is_block;       /* a device, not a filesystem */
        bool is_of_one_pod;  /* only one pod at a time may use it */
        bool is_republished; /* the driver requires republishing */
        bool has_tokens_in_secrets;
        const CsiDriverObject *driver_object; /* NULL: there is none */
        char *tokens;             /* of the pod's service account, as a JSON object; or NULL */
        char *selinux_label;      /* of all its files, by a mount option; or NULL */
        bool has_pod_info;        /* the driver gets name and service account of the pod */
        bool is_group_by_file;    /* fsGroup is applied to every kind of volume, or */
        bool is_group_left_alone; /* to none */
        const DataObject *stage_secret, *publish_secret; /* or NULL */
        const DataObject *expand_secret;     /* csi_volume_add_expand_secret() sets it; or NULL */
        const DataObject *claim, *pv_object; /* or NULL */
} CsiVolume;

void csi_volume_done(CsiVolume *volume);

/* The access of a PersistentVolume, which is its first. */
CsiAccess csi_access_of(char *const *access_modes);

/* fsGroup applies to the volume, if its driver does not apply it. */
bool csi_volume_has_group(const CsiVolume *volume);

enum {
        CSI_NAME_SIZE = sizeof("csi-") + SHA256_HEX_SIZE - 1
};

/* The name of the VolumeAttachment of a volume on a node. */
void csi_attachment_name(const char *handle, const char *driver, const char *node,
                         char ret[CSI_NAME_SIZE]);

/* The handle of an ephemeral volume. */
void csi_ephemeral_handle(const char *pod_uid, const char *volume, char ret[CSI_NAME_SIZE]);

/* Relative to the kubelet's directory; the caller frees them, NULL: out of memory.
 * "pods/<uid>/volumes/kubernetes.io~csi/<name>", in which the driver makes "mount"; and
 * "plugins/kubernetes.io/csi/<driver>/<hash of the handle>", which has "globalmount". */
char *csi_publish_dir(const char *pod_uid, const char *name);
char *csi_stage_dir(const char *driver, const char *handle);

/* Likewise of a volume that is a block device, 'name' is that of the PersistentVolume: the
 * directory with its vol_data.json; those of its stage and of its devices, in which the driver
 * makes one with the UID of each pod; and the link to that device. */
char *csi_block_data_dir(const char *name);
char *csi_block_stage_dir(const char *name);
char *csi_block_publish_dir(const char *name);
char *csi_block_link(const char *pod_uid, const char *name);
