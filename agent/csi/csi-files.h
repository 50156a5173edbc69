/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The directories of CSI volumes below the kubelet's directory, and the vol_data.json in each of
 * them, in the layout that drivers and their tools expect. Containers of drivers write there: no
 * link is followed. */

#include "common/error.h"

#define CSI_MOUNT_NAME "mount"       /* made by the driver */
#define CSI_STAGE_NAME "globalmount" /* made for the driver */

typedef struct CsiVolumeData {
        char *driver;
        char *handle;
        char *name; /* of the volume; NULL: it is a staged one */
        char *node;
        char *attachment;
        char *selinux_label; /* with which it was mounted; NULL: without one */
        bool is_ephemeral;
        bool is_block; /* not in the file: by its place */
} CsiVolumeData;

void csi_volume_data_done(CsiVolumeData *data);

/* Makes the directory, and in it the subdirectory unless that is NULL; writes the file. 0 or
 * -errno. */
int csi_files_write(int kubelet_fd, const char *directory, const char *subdirectory,
                    const CsiVolumeData *data);

/* Removes the directory of a volume that is unmounted, and those of its pod that are empty then.
 * A missing directory counts as removed. -EBUSY: something is still mounted there. */
int csi_files_remove(int kubelet_fd, const char *directory, const char *subdirectory);

/* The same for a block device: its file, and the directory of its stage; or for a pod, the
 * directory of its devices and the link to the pod's, below the absolute 'kubelet_dir', by which it
 * is found again. */
int csi_files_write_block(int kubelet_fd, const char *kubelet_dir, const char *pod_uid,
                          const CsiVolumeData *data);
int csi_files_remove_block(int kubelet_fd, const char *pod_uid, const char *name);

/* Calls back for each volume on the disk: 'pod_uid' is NULL for a staged one. All is borrowed.
 * Directories without a valid file are named in the log and left alone. 0 or -errno. */
typedef int (*csi_volume_found_t)(const char *pod_uid, const CsiVolumeData *data, void *userdata);
int csi_files_find(int kubelet_fd, csi_volume_found_t on_found, void *userdata);
