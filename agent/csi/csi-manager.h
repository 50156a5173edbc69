/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The CSI drivers that have registered on this node, and the volumes of pods that they mount
 * (kubelet: csiPlugin and the volume manager). Its callbacks come from the loop. */

#include "agent/model/csi-driver.h"
#include "agent/model/csi-volume.h"
#include "common/buffer.h"

#include <stdio.h>
#include <systemd/sd-event.h>

typedef struct CsiManager CsiManager;

typedef struct CsiManagerConfig { /* all is borrowed */
        sd_event *event;
        const char *kubelet_dir; /* "/var/lib/kubelet" */
        const char *node_name;
        /* A volume of the pod is mounted, has failed or is unmounted. */
        void (*on_pod_changed)(const char *uid, void *userdata);
        /* csi_manager_drivers() is different. */
        void (*on_drivers_changed)(void *userdata);
        void *userdata;
} CsiManagerConfig;

/* A call of csi.v1.Node. All is borrowed. */
typedef struct CsiCallSpec {
        int64_t call; /* of csi_manager_answer() */
        const char *endpoint;
        const char *method; /* "NodePublishVolume" */
        const Buffer *request;
        uint64_t usec; /* time limit */
} CsiCallSpec;

enum {
        CSI_CALL_FIRST = 1 << 30 /* calls of a CsiManager have this number, or a greater one */
};

/* 0: csi_manager_answer() follows; -errno: it does not. */
typedef int (*csi_call_t)(const CsiCallSpec *call, void *userdata);

/* Finds the volumes that an earlier agent has mounted. A directory that cannot be used is logged.
 * 0 or -ENOMEM. */
int csi_manager_new(const CsiManagerConfig *config, CsiManager **ret);
CsiManager *csi_manager_free(CsiManager *manager);
void csi_manager_set_caller(CsiManager *manager, csi_call_t call, void *userdata);

/* Unmounts the volumes of pods that are not there any more. */
void csi_manager_sweep(CsiManager *manager, bool (*has_pod)(const char *uid, void *userdata),
                       void *userdata);

/* ---- drivers ---- */

/* Whether a driver may register with these versions. 0, or -EINVAL with the kubelet's message. */
int csi_manager_check_driver(const CsiManager *manager, const char *name, const char *endpoint,
                             char *const *versions, Error *reterr);

/* 'answer' is that of NodeGetInfo. 0 or -ENOMEM. */
int csi_manager_register(CsiManager *manager, const char *name, const char *endpoint,
                         char *const *versions, const CsiNodeAnswer *answer);
void csi_manager_unregister(CsiManager *manager, const char *name);

/* Borrowed. */
const CsiNodeDriverList *csi_manager_drivers(const CsiManager *manager);

/* Its capabilities: it applies fsGroup itself. */
bool csi_manager_driver_sets_group(const char *driver, void *manager);

/* The end of a call: 'code' is that of gRPC, 'error' as Go prints it, or NULL. */
void csi_manager_answer(CsiManager *manager, int64_t call, int64_t code, const char *error,
                        const CsiNodeAnswer *answer);

/* Calls that were under way have no answer. Those that were never read are made again. */
void csi_manager_on_calls_lost(CsiManager *manager, bool were_read);

/* ---- volumes ---- */

/* Mounts a volume for a pod that is about to start. 0: it is mounted; -EAGAIN with a message: not
 * yet, on_pod_changed() follows; -EIO with the kubelet's message of a failure, which is tried again
 * later. */
int csi_manager_mount(CsiManager *manager, const Pod *pod, const CsiVolume *volume, Error *reterr);

/* A pod that runs has this volume. 1: it must be mounted again now, by csi_manager_mount(); 0: it
 * is not; -EIO with the kubelet's message: that has failed, and the volume stays as it is. */
int csi_manager_check_running(CsiManager *manager, const char *uid, const CsiVolume *volume,
                              Error *reterr);

/* ---- expansion ---- */

typedef enum CsiExpansionError {
        CSI_EXPANSION_DONE,
        CSI_EXPANSION_FAILED, /* it is tried again later */
        CSI_EXPANSION_FAILED_AGAIN,
        CSI_EXPANSION_INFEASIBLE,  /* the driver will never expand it to this size */
        CSI_EXPANSION_REFUSED,     /* not while it is mounted, and so not tried again */
        CSI_EXPANSION_UNSUPPORTED, /* by the driver */
} CsiExpansionError;

/* The size that a volume of a pod has on this node: as expanded, or else that of its claim, which
 * is remembered if it is the first. 0: not known. */
int64_t csi_manager_volume_size(CsiManager *manager, const char *uid, const CsiVolume *volume);

/* Expands a volume that is mounted and smaller than 'bytes'. 1: it has this size now; 0: the driver
 * refuses it while it is mounted, or it is not mounted any more;
 * -EAGAIN: under way or tried again later, on_pod_changed() follows; -EIO with the kubelet's
 * message of a new failure. */
int csi_manager_expand(CsiManager *manager, const Pod *pod, const CsiVolume *volume, int64_t bytes,
                       CsiExpansionError *ret_error, Error *reterr);

/* The volume is regarded as one of this size. */
void csi_manager_set_volume_size(CsiManager *manager, const char *uid, const CsiVolume *volume,
                                 int64_t bytes);

/* Whether the claim of a mounted volume that its driver can expand is due to be read again. */
bool csi_manager_claim_is_due(CsiManager *manager, const char *uid, const CsiVolume *volume);

/* Unmounts all volumes of a pod without running processes. True: all are unmounted; false:
 * on_pod_changed() follows. A NULL manager has no volumes. */
bool csi_manager_unmount_pod(CsiManager *manager, const char *uid);

/* The usage of a volume, as its driver last reported it. */
typedef struct CsiVolumeStats {
        uint64_t taken_at; /* realtime; 0: it is not known */
        uint64_t bytes, bytes_available, bytes_used;
        uint64_t inodes, inodes_available, inodes_used;
        bool has_condition; /* the driver reports a condition */
        bool is_abnormal;
} CsiVolumeStats;

/* Returns the last known usage of a mounted volume, and requests the current one from its driver
 * for the next caller, at most once a minute. NULL: it is not known. */
const CsiVolumeStats *csi_manager_stats(CsiManager *manager, const char *uid, const char *volume);

/* "kubernetes.io/csi/<driver>^<handle>" of each volume that is mounted or may be, and is attached
 * or may be, for Node.status.volumesInUse. 0 or -ENOMEM. */
int csi_manager_volumes_in_use(const CsiManager *manager, char ***ret);

/* Prints drivers and volumes for `mainstay debug dump`. */
void csi_manager_dump(const CsiManager *manager, FILE *out);
