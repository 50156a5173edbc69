/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The parts of a CsiManager. */

#include "agent/csi/csi-manager.h"
#include "common/back-off.h"

/* Which volume, on whatever node and by whatever name. */
typedef struct CsiVolumeId {
        char *driver;
        char *handle;
} CsiVolumeId;

/* A volume that is staged on the node, or may be. */
typedef struct CsiStage {
        struct CsiStage *next;
        CsiVolumeId id;
        char *block_name;    /* of a block device: of its PersistentVolume; else NULL */
        bool is_staged;      /* it certainly is */
        char *selinux_label; /* with which it is staged; NULL: without one */
} CsiStage;

/* The arguments of the calls that mount a volume; copies. */
typedef struct CsiMountRequest {
        StringMap stage_attributes, publish_attributes; /* these with what is about the pod */
        StringMap publish_context, stage_secrets, publish_secrets, expand_secrets;
        char *fs_type;
        char **mount_options;
        char *selinux_label; /* or NULL */
        char *group;         /* fsGroup, if it applies to the volume */
        CsiAccess access;
        bool is_read_only;
        int64_t bytes; /* the size to which it is expanded; 0: only find out whether the driver can
                        * expand it */
} CsiMountRequest;

typedef enum CsiStep {
        CSI_STEP_NONE,
        CSI_STEP_MOUNT,   /* NodeGetCapabilities, to mount */
        CSI_STEP_RESTAGE, /* NodeUnstageVolume, to stage it with another label */
        CSI_STEP_STAGE,
        CSI_STEP_PUBLISH,
        CSI_STEP_UNPUBLISH,
        CSI_STEP_UNMOUNT, /* NodeGetCapabilities, to unstage */
        CSI_STEP_UNSTAGE,
        CSI_STEP_CAN_EXPAND, /* NodeGetCapabilities, to expand */
        CSI_STEP_EXPAND,
        N_CSI_STEPS,
} CsiStep;

extern const char *const csi_step_methods[N_CSI_STEPS];

/* A volume of a pod. */
typedef struct CsiMount {
        struct CsiMount *next;
        CsiManager *manager;
        char *pod_uid; /* "": it is only staged, and no pod needs it */
        char *name;
        CsiVolumeId id;
        bool is_ephemeral;
        bool is_block;
        bool is_attached;      /* by a VolumeAttachment, or this is not known */
        bool may_be_published; /* NodeUnpublishVolume is due at the end */
        bool was_uncertain;    /* it may have been published before the mount under way */
        bool was_stage_uncertain;
        bool is_published;
        bool is_unwanted;
        bool is_of_one_pod;
        bool is_republished;   /* again and again, while the pod runs; */
        bool is_republish_due; /* at the pod's next turn */
        CsiStep step;
        int64_t call;
        unsigned capabilities;       /* of the driver, for this operation */
        CsiMountRequest *request;    /* of the mount that is under way */
        char *error;                 /* of the last operation, with its kubelet's prefix; or NULL */
        bool is_error_new;           /* not reported to the pod yet */
        uint64_t due;                /* boot time of the next step; USEC_INFINITY: none */
        uint64_t delay;              /* of the back-off */
        int64_t bytes;               /* its size on this node; 0: not known */
        int64_t expanded_bytes;      /* by the last expansion */
        CsiExpansionError expansion; /* how that has ended */
        char *expansion_error;       /* with it; or NULL */
        bool is_expansion_new;       /* the result of the last one was not reported to the pod yet
                                      */
        bool is_expansion_refused;   /* while it is mounted */
        uint64_t expansion_due;      /* boot time from which it may be tried again */
        uint64_t expansion_delay;    /* of the back-off */
        uint64_t claim_due;          /* boot time at which its claim is read again; USEC_INFINITY:
                                      * never, as far as is known */
        bool is_claim_due;
        int64_t stats_call;          /* that is under way; 0: none */
        bool stats_has_capabilities; /* it is NodeGetVolumeStats */
        uint64_t stats_asked_at;     /* boot time; 0: never */
        CsiVolumeStats stats;
} CsiMount;

struct CsiManager {
        CsiManagerConfig config;
        csi_call_t call; /* NULL: there are no plugins */
        void *call_userdata;
        int kubelet_fd; /* -EBADF: it cannot be used */
        CsiNodeDriverList drivers;
        CsiStage *stages;
        CsiMount *mounts;
        sd_event_source *timer;
        int64_t last_call;
};

/* Valid until another one registers or deregisters. */
CsiNodeDriver *csi_manager_find_driver(const CsiManager *manager, const char *name);
CsiMount *csi_manager_find_mount(const CsiManager *manager, const char *uid, const char *name);
void csi_manager_arm(CsiManager *manager);

/* It is not in the state that is wanted. */
bool csi_mount_waits(const CsiMount *mount);

/* Copies both. 0 or -ENOMEM. */
int csi_volume_id_init(CsiVolumeId *id, const char *driver, const char *handle);
void csi_volume_id_done(CsiVolumeId *id);
bool csi_volume_id_equal(const CsiVolumeId *a, const CsiVolumeId *b);

/* Sends a call of a mount. 0 with its number, or -errno. */
int csi_mount_send(const CsiMount *mount, const char *method, const Buffer *request, uint64_t usec,
                   int64_t *ret_call);
char *csi_mount_publish_path(const CsiMount *mount);
unsigned csi_capabilities_of(const CsiNodeAnswer *answer);

/* ---- csi-stats.c ---- */

/* The end of its call for statistics. */
void csi_stats_answer(CsiMount *mount, int64_t code, const CsiNodeAnswer *answer);

/* ---- csi-expand.c ---- */

/* The end of a call of CSI_STEP_CAN_EXPAND or CSI_STEP_EXPAND. */
void csi_expand_answer(CsiMount *mount, int64_t code, const char *error,
                       const CsiNodeAnswer *answer);

/* ---- csi-operation.c ---- */

/* The stage belongs to the manager. NULL: out of memory. */
CsiStage *csi_stage_add(CsiManager *manager, const char *driver, const char *handle,
                        const char *block_name);
void csi_stage_free(CsiManager *manager, CsiStage *stage);

/* An operation of another mount of its volume is under way. */
bool csi_mount_is_busy(const CsiMount *mount);

/* The volume on this node. */
bool csi_mount_is_of(const CsiMount *mount, const CsiMount *other);

/* Starts a step of the operation by its call; the end of it comes as an answer, also if it cannot
 * be sent. */
void csi_mount_call(CsiMount *mount, CsiStep step, const Buffer *request);

/* Its operation has ended, and changes nothing about when others are due. */
void csi_mount_release(CsiMount *mount);

/* The capabilities in an answer are those of the mount, and of its driver. */
void csi_mount_take_capabilities(CsiMount *mount, const CsiNodeAnswer *answer);

/* For csi.v1.VolumeCapability, by its request. */
int64_t csi_mount_access_mode(const CsiMount *mount);
char *csi_mount_stage_path(const CsiMount *mount);

extern const BackOffLimits csi_back_off;

/* Waiting mounts of the same volume are continued soon. */
void csi_mount_wake_others(const CsiMount *mount);

/* Copies what the calls need. 0 or -ENOMEM. */
int csi_mount_request_new(const Pod *pod, const CsiVolume *volume, CsiMountRequest **ret);
void csi_mount_request_free(CsiMountRequest *request);

/* Starts to mount; the request is taken. 0: it is under way, or waits for another operation;
 * -EIO with a message. */
int csi_mount_start(CsiMount *mount, CsiMountRequest *request, Error *reterr);

/* When a volume that is published now is published again; boot time. */
uint64_t csi_republish_time(void);

/* Starts or continues to unmount, if no operation is under way. Whether nothing is left: then it is
 * the caller's to free. */
bool csi_unmount_step(CsiMount *mount);

/* Its call is lost: the operation starts again. */
void csi_mount_repeat(CsiMount *mount);

/* The end of its call. */
void csi_mount_answer(CsiMount *mount, int64_t code, const char *error,
                      const CsiNodeAnswer *answer);
