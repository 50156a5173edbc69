/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The parts of a CsiManager. */

#include "agent/csi/csi-manager.h"
#include "common/back-off.h"

/* Identifies a volume, independent of the node and of names. */
typedef struct CsiVolumeId {
        char *driver;
        char *handle;
} CsiVolumeId;

/* A volume that is staged on the node, or may be. */
typedef struct CsiStage {
        struct CsiStage *next;
        CsiVolumeId id;
        char *block_name;    /* for a block device: the name of its PersistentVolume; else NULL */
        bool is_staged;      /* certainly staged */
        char *selinux_label; /* the label with which it is staged; NULL: none */
} CsiStage;

/* The arguments of the calls that mount a volume; copies. */
typedef struct CsiMountRequest {
        StringMap stage_attributes, publish_attributes; /* the volume's attributes, without and with
                                                         * the pod's data */
        StringMap publish_context, stage_secrets, publish_secrets, expand_secrets;
        char *fs_type;
        char **mount_options;
        char *selinux_label; /* or NULL */
        char *group;         /* fsGroup, if it applies to the volume */
        CsiAccess access;
        bool is_read_only;
        int64_t bytes; /* the size to expand to; 0: only query whether the driver can expand
                        * volumes */
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
        char *pod_uid; /* "": only staged; no pod needs it */
        char *name;
        CsiVolumeId id;
        bool is_ephemeral;
        bool is_block;
        bool is_attached;      /* attached by a VolumeAttachment, or possibly so */
        bool may_be_published; /* NodeUnpublishVolume is due at the end */
        bool was_uncertain;    /* it may have been published before the mount in progress */
        bool was_stage_uncertain;
        bool is_published;
        bool is_unwanted;
        bool is_of_one_pod;
        bool is_republished;   /* it is published repeatedly while the pod runs; */
        bool is_republish_due; /* publishing is due in the pod's next turn */
        CsiStep step;
        int64_t call;
        unsigned capabilities;       /* the driver's capabilities, for this operation */
        CsiMountRequest *request;    /* of the mount that is in progress */
        char *error;                 /* of the last operation, with the kubelet's prefix; or NULL */
        bool is_error_new;           /* the error has not been reported to the pod yet */
        uint64_t due;                /* boot time of the next step; USEC_INFINITY: none */
        uint64_t delay;              /* of the back-off */
        int64_t bytes;               /* its size on this node; 0: not known */
        int64_t expanded_bytes;      /* size after the last expansion */
        CsiExpansionError expansion; /* how the last expansion ended */
        char *expansion_error;       /* its error; or NULL */
        bool is_expansion_new;       /* its result has not been reported to the pod yet
                                      */
        bool is_expansion_refused;   /* the driver refuses expansion while the volume is mounted */
        int64_t given_up_bytes;      /* the size that was given up and is not requested again; 0:
                                      * none */
        uint64_t expansion_due;      /* boot time of the next attempt */
        uint64_t expansion_delay;    /* back-off delay */
        uint64_t claim_due;          /* boot time at which its claim is read again; USEC_INFINITY:
                                      * not planned */
        bool is_claim_due;
        int64_t stats_call;          /* the call in progress; 0: none */
        bool stats_has_capabilities; /* the call is NodeGetVolumeStats */
        uint64_t stats_asked_at;     /* boot time; 0: never */
        CsiVolumeStats stats;
} CsiMount;

struct CsiManager {
        CsiManagerConfig config;
        csi_call_t call; /* NULL: there are no plugins */
        void *call_userdata;
        int kubelet_fd; /* -EBADF: the directory cannot be used */
        CsiNodeDriverList drivers;
        CsiStage *stages;
        CsiMount *mounts;
        sd_event_source *timer;
        int64_t last_call;
};

/* The result is valid until a driver registers or deregisters. */
CsiNodeDriver *csi_manager_find_driver(const CsiManager *manager, const char *name);
CsiMount *csi_manager_find_mount(const CsiManager *manager, const char *uid, const char *name);
void csi_manager_arm(CsiManager *manager);

/* The mount is not in its desired state yet. */
bool csi_mount_waits(const CsiMount *mount);

/* Copies both strings. 0 or -ENOMEM. */
int csi_volume_id_init(CsiVolumeId *id, const char *driver, const char *handle);
void csi_volume_id_done(CsiVolumeId *id);
bool csi_volume_id_equal(const CsiVolumeId *a, const CsiVolumeId *b);

/* Sends a call for a mount. Returns 0 and its number, or -errno. */
int csi_mount_send(const CsiMount *mount, const char *method, const Buffer *request, uint64_t usec,
                   int64_t *ret_call);
char *csi_mount_publish_path(const CsiMount *mount);
unsigned csi_capabilities_of(const CsiNodeAnswer *answer);

/* ---- csi-stats.c ---- */

/* The statistics call of the mount has ended. */
void csi_stats_answer(CsiMount *mount, int64_t code, const CsiNodeAnswer *answer);

/* ---- csi-expand.c ---- */

/* A call of CSI_STEP_CAN_EXPAND or CSI_STEP_EXPAND has ended. */
void csi_expand_answer(CsiMount *mount, int64_t code, const char *error,
                       const CsiNodeAnswer *answer);

/* ---- csi-operation.c ---- */

/* The manager owns the result. NULL: out of memory. */
CsiStage *csi_stage_add(CsiManager *manager, const char *driver, const char *handle,
                        const char *block_name);
void csi_stage_free(CsiManager *manager, CsiStage *stage);

/* Whether an operation of another mount of the same volume is in progress. */
bool csi_mount_is_busy(const CsiMount *mount);

/* Whether both are mounts of the same volume. */
bool csi_mount_is_of(const CsiMount *mount, const CsiMount *other);

/* Starts a step of the operation by sending its call. The end of the step is reported like an
 * answer, even if the call cannot be sent. */
void csi_mount_call(CsiMount *mount, CsiStep step, const Buffer *request);

/* The operation of a mount has ended. Does not change when the next ones are due. */
void csi_mount_release(CsiMount *mount);

/* Stores the capabilities in an answer for the mount and for its driver. */
void csi_mount_take_capabilities(CsiMount *mount, const CsiNodeAnswer *answer);

/* The access mode for csi.v1.VolumeCapability, from the mount's request. */
int64_t csi_mount_access_mode(const CsiMount *mount);
char *csi_mount_stage_path(const CsiMount *mount);

extern const BackOffLimits csi_back_off;

/* Schedules waiting mounts of the same volume. */
void csi_mount_wake_others(const CsiMount *mount);

/* Copies everything that the calls need. 0 or -ENOMEM. */
int csi_mount_request_new(const Pod *pod, const CsiVolume *volume, CsiMountRequest **ret);
void csi_mount_request_free(CsiMountRequest *request);

/* Starts to mount. Takes ownership of the request. 0: the mount is in progress, or waits for
 * another operation; -EIO with a message. */
int csi_mount_start(CsiMount *mount, CsiMountRequest *request, Error *reterr);

/* The boot time at which a volume that is published now must be published again. */
uint64_t csi_republish_time(void);

/* Starts or continues to unmount, if no operation is in progress. Returns true if nothing is left:
 * the caller then frees the mount. */
bool csi_unmount_step(CsiMount *mount);

/* The call of a mount was lost, so its operation starts again. */
void csi_mount_repeat(CsiMount *mount);

/* The call of the mount has ended. */
void csi_mount_answer(CsiMount *mount, int64_t code, const char *error,
                      const CsiNodeAnswer *answer);
