/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The CSI drivers that have registered on this node, and the volumes of pods that they mount
 * (kubelet: csiPlugin and the volume manager). Callbacks are called from the loop. */

#include "agent/model/csi-driver.h"
#include "agent/model/csi-volume.h"
#include "common/buffer.h"

#include <stdio.h>
#include <systemd/sd-event.h>

typedef struct CsiManager CsiManager;

typedef struct CsiManagerConfig { /* all members are borrowed */
        sd_event *event;
        const char *kubelet_dir; /* "/var/lib/kubelet" */
        const char *node_name;
        /* A volume of the pod is mounted, has failed or is unmounted. */
        void (*on_pod_changed)(const char *uid, void *userdata);
        /* csi_manager_drivers() has changed. */
        void (*on_drivers_changed)(void *userdata);
        void *userdata;
} CsiManagerConfig;

/* A call of csi.v1.Node. All members are borrowed. */
typedef struct CsiCallSpec {
        int64_t call; /* for csi_manager_answer() */
        const char *endpoint;
        const char *method; /* "NodePublishVolume" */
        const Buffer *request;
        uint64_t usec; /* time limit */
} CsiCallSpec;

enum {
        CSI_CALL_FIRST = 1 << 30 /* the numbers of a CsiManager's calls start here */
};

/* 0: csi_manager_answer() will be called; -errno: it will not. */
typedef int (*csi_call_t)(const CsiCallSpec *call, void *userdata);

/* Finds the volumes that an earlier agent mounted. A directory that cannot be used is logged. 0 or
 * -ENOMEM. */
int csi_manager_new(const CsiManagerConfig *config, CsiManager **ret);
CsiManager *csi_manager_free(CsiManager *manager);
void csi_manager_set_caller(CsiManager *manager, csi_call_t call, void *userdata);

/* Unmounts the volumes of pods that no longer exist. */
void csi_manager_sweep(CsiManager *manager, bool (*has_pod)(const char *uid, void *userdata),
                       void *userdata);

/* ---- drivers ---- */

/* Whether a driver may register with these versions. 0, or -EINVAL with the kubelet's message. */
int csi_manager_check_driver(const CsiManager *manager, const char *name, const char *endpoint,
                             char *const *versions, Error *reterr);

/* 'answer' is the answer to NodeGetInfo. 0 or -ENOMEM. */
int csi_manager_register(CsiManager *manager, const char *name, const char *endpoint,
                         char *const *versions, const CsiNodeAnswer *answer);
void csi_manager_unregister(CsiManager *manager, const char *name);

/* Borrowed. */
const CsiNodeDriverList *csi_manager_drivers(const CsiManager *manager);

/* Whether the driver applies fsGroup itself, according to its capabilities. */
bool csi_manager_driver_sets_group(const char *driver, void *manager);

/* A call has ended: 'code' is the gRPC status code, 'error' the message as Go prints it, or
 * NULL. */
void csi_manager_answer(CsiManager *manager, int64_t call, int64_t code, const char *error,
                        const CsiNodeAnswer *answer);

/* The calls in progress will not be answered. Calls that were never read are repeated. */
void csi_manager_on_calls_lost(CsiManager *manager, bool were_read);

/* ---- volumes ---- */

/* Mounts a volume for a pod that is about to start. 0: it is mounted; -EAGAIN with a message: it is
 * not mounted yet, and on_pod_changed() follows; -EIO with the kubelet's message of a failure,
 * after which the operation is tried again later. */
int csi_manager_mount(CsiManager *manager, const Pod *pod, const CsiVolume *volume, Error *reterr);

/* For a volume of a running pod. 1: it must be mounted again now, by csi_manager_mount(); 0:
 * nothing needs to be done; -EIO with the kubelet's message: mounting again has failed, and the
 * volume stays as it is. */
int csi_manager_check_running(CsiManager *manager, const char *uid, const CsiVolume *volume,
                              Error *reterr);

/* ---- expansion ---- */

typedef enum CsiExpansionError {
        CSI_EXPANSION_DONE,
        CSI_EXPANSION_FAILED, /* it is tried again later */
        CSI_EXPANSION_FAILED_AGAIN,
        CSI_EXPANSION_INFEASIBLE,  /* the driver will never expand it to this size */
        CSI_EXPANSION_REFUSED,     /* refused while it is mounted, and not tried again */
        CSI_EXPANSION_UNSUPPORTED, /* not supported by the driver */
} CsiExpansionError;

/* The size of a pod's volume on this node: the size after an expansion or, without one, the size of
 * its claim, which the first call stores. 0: not known. */
int64_t csi_manager_volume_size(CsiManager *manager, const char *uid, const CsiVolume *volume);

/* Expands a mounted volume that is smaller than 'bytes'. 1: it has this size now; 0: the driver
 * refuses to expand it while it is mounted, this size was given up, or it is no longer mounted;
 * -EAGAIN: in progress or to be retried, on_pod_changed() follows; -EIO with the kubelet's message
 * of a new failure. */
int csi_manager_expand(CsiManager *manager, const Pod *pod, const CsiVolume *volume, int64_t bytes,
                       CsiExpansionError *ret_error, Error *reterr);

/* Does not request the driver to expand the volume to this size again, because it takes a while
 * until the API server returns the claim that reports the size as infeasible. 0: any size may be
 * requested again. */
void csi_manager_give_up_expansion(CsiManager *manager, const char *uid, const CsiVolume *volume,
                                   int64_t bytes);

/* Sets the size that the volume is assumed to have. */
void csi_manager_set_volume_size(CsiManager *manager, const char *uid, const CsiVolume *volume,
                                 int64_t bytes);

/* Whether the claim of a mounted volume that its driver can expand must be read again now. */
bool csi_manager_claim_is_due(CsiManager *manager, const char *uid, const CsiVolume *volume);

/* Unmounts all volumes of a pod without running processes. True: all are unmounted; false:
 * on_pod_changed() follows. A NULL manager has no volumes. */
bool csi_manager_unmount_pod(CsiManager *manager, const char *uid);

/* The usage of a volume, as its driver last reported it. */
typedef struct CsiVolumeStats {
        uint64_t taken_at; /* realtime; 0: unknown */
        uint64_t bytes, bytes_available, bytes_used;
        uint64_t inodes, inodes_available, inodes_used;
        bool has_condition; /* the driver reports the volume's condition */
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
