/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The directories of CSI volumes below the kubelet's directory, and the vol_data.json in each of
 * them, in the layout that drivers and their tools expect. Drivers' containers write there, so no
 * link is followed. */

#include "common/error.h"

#define CSI_MOUNT_NAME "mount"       /* created by the driver */
#define CSI_STAGE_NAME "globalmount" /* created for the driver */

typedef struct CsiVolumeData {
        char *driver;
        char *handle;
        char *name; /* name of the volume in the pod; NULL: a staged volume */
        char *node;
        char *attachment;
        char *selinux_label; /* the label with which it was mounted; NULL: none */
        bool is_ephemeral;
        bool is_block; /* not stored in the file, because its path contains it */
} CsiVolumeData;

void csi_volume_data_done(CsiVolumeData *data);

/* Creates the directory, and in it the subdirectory unless it is NULL; writes the file. 0 or
 * -errno. */
int csi_files_write(int kubelet_fd, const char *directory, const char *subdirectory,
                    const CsiVolumeData *data);

/* Removes the directory of an unmounted volume, and the parent directories of its pod that become
 * empty. A missing directory counts as removed. -EBUSY: something is still mounted there. */
int csi_files_remove(int kubelet_fd, const char *directory, const char *subdirectory);

/* The same for a block device: its file and staging directory or, for a pod, the directory of its
 * devices and a link to the pod's device. The link is an absolute path below 'kubelet_dir', by
 * which the device is found again. */
int csi_files_write_block(int kubelet_fd, const char *kubelet_dir, const char *pod_uid,
                          const CsiVolumeData *data);
int csi_files_remove_block(int kubelet_fd, const char *pod_uid, const char *name);

/* Calls back for each volume on the disk: 'pod_uid' is NULL for a staged one. All arguments are
 * borrowed. Directories without a valid file are logged and left alone. 0 or -errno. */
typedef int (*csi_volume_found_t)(const char *pod_uid, const CsiVolumeData *data, void *userdata);
int csi_files_find(int kubelet_fd, csi_volume_found_t on_found, void *userdata);
