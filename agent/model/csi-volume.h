/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A volume of a pod that a CSI driver mounts, resolved: an ephemeral one, or one with a claim and a
 * PersistentVolume. Also the paths that drivers expect from a kubelet. */

#include "agent/model/object.h"
#include "common/hash.h"

typedef enum CsiAccess {
        CSI_ACCESS_READ_WRITE_ONCE,
        CSI_ACCESS_READ_ONLY_MANY,
        CSI_ACCESS_READ_WRITE_MANY,
        CSI_ACCESS_READ_WRITE_ONCE_POD,
} CsiAccess;

/* Everything is borrowed except the handle, the tokens and the label. */
typedef struct CsiVolume {
        const char *name; /* of the PersistentVolume; for an ephemeral volume, its name in the
                           * pod */
        const char *driver;
        char *handle;
        const char *fs_type;              /* NULL: the driver's default */
        const StringMap *attributes;      /* or NULL */
        const StringMap *publish_context; /* from its VolumeAttachment; NULL: not attached */
        char *const *mount_options;       /* or NULL */
        CsiAccess access;
        bool is_read_only;
        bool is_ephemeral;
        bool is_block;       /* a device, not a filesystem */
        bool is_of_one_pod;  /* only one pod may use it at a time */
        bool is_republished; /* the driver requires republishing */
        bool has_tokens_in_secrets;
        const CsiDriverObject *driver_object; /* NULL: there is none */
        char *tokens;             /* tokens of the pod's service account, as a JSON object; or
                                   * NULL */
        char *selinux_label;      /* label of all its files, set by a mount option; or NULL */
        bool has_pod_info;        /* the driver receives name and service account of the pod */
        bool is_group_by_file;    /* fsGroup is applied to volumes of all kinds */
        bool is_group_left_alone; /* fsGroup is not applied */
        const DataObject *stage_secret, *publish_secret; /* or NULL */
        const DataObject *expand_secret;     /* set by csi_volume_add_expand_secret(); or NULL */
        const DataObject *claim, *pv_object; /* or NULL */
} CsiVolume;

void csi_volume_done(CsiVolume *volume);

/* The access mode of a PersistentVolume, which is the first one that it lists. */
CsiAccess csi_access_of(char *const *access_modes);

/* Whether fsGroup applies to the volume, if its driver does not apply it itself. */
bool csi_volume_has_group(const CsiVolume *volume);

enum {
        CSI_NAME_SIZE = sizeof("csi-") + SHA256_HEX_SIZE - 1
};

/* The name of the VolumeAttachment of a volume on a node. */
void csi_attachment_name(const char *handle, const char *driver, const char *node,
                         char ret[CSI_NAME_SIZE]);

/* The handle of an ephemeral volume. */
void csi_ephemeral_handle(const char *pod_uid, const char *volume, char ret[CSI_NAME_SIZE]);

/* Paths relative to the kubelet's directory; the caller frees them, NULL: out of memory.
 * "pods/<uid>/volumes/kubernetes.io~csi/<name>", in which the driver creates "mount"; and
 * "plugins/kubernetes.io/csi/<driver>/<hash of the handle>", which contains "globalmount". */
char *csi_publish_dir(const char *pod_uid, const char *name);
char *csi_stage_dir(const char *driver, const char *handle);

/* The same for a volume that is a block device; 'name' is the name of the PersistentVolume. The
 * paths are the directory with its vol_data.json; the directory for staging; the directory in which
 * the driver creates a device named after the UID of each pod; and the link to that device. */
char *csi_block_data_dir(const char *name);
char *csi_block_stage_dir(const char *name);
char *csi_block_publish_dir(const char *name);
char *csi_block_link(const char *pod_uid, const char *name);
