/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The pod worker's own struct, shared by the files that own it: pod-worker.c decides what the pod
 * should do (run, terminate, apply an edit), pod-worker-failure.c fails it, pod-worker-sandbox.c
 * brings its sandbox to the required state, pod-worker-dump.c prints it. No other file includes
 * this. */

#include "agent/pods/container/pod-containers.h"
#include "agent/pods/pod/active-deadline.h"
#include "agent/pods/pod/awaited-pods.h"
#include "agent/pods/pod/pod-admission.h"
#include "agent/pods/pod/pod-failure.h"
#include "agent/pods/pod/pod-resize.h"
#include "agent/pods/pod/pod-termination.h"
#include "agent/pods/pod/pod-volumes.h"
#include "agent/pods/pod/storage-monitor.h"
#include "agent/pods/status/pod-status.h"
#include "agent/pods/worker/pod-worker.h"

typedef enum PodWorkerState {
        WORKER_NO_SANDBOX,   /* no shim is known */
        WORKER_SYNCING,      /* connected; the shim replays its state */
        WORKER_SETTING_UP,   /* the pod's mounts are being made */
        WORKER_ATTACHING,    /* its network is being attached */
        WORKER_READY,        /* containers may run */
        WORKER_DETACHING,    /* no container is running; its network is being detached */
        WORKER_TEARING_DOWN, /* the shim has been requested to exit */
        WORKER_SANDBOX_LOST, /* the shim is gone; its remains must be cleaned up */
        WORKER_CLEANING_UP,  /* a child is cleaning up */
        WORKER_UNMOUNTING,   /* CSI drivers are unmounting its volumes */
        WORKER_RETRY_WAIT,   /* something failed; the timer leads to 'retry_state' */
        WORKER_REMOVED,      /* nothing is left */
        N_WORKER_STATES,
} PodWorkerState;

extern const char *const pod_worker_state_names[N_WORKER_STATES];

/* The stage of a sandbox's start, or the stage at which it failed. */
typedef enum SandboxStartStage {
        START_SANDBOX,
        START_CLASSES,
        START_DEVICES,
        START_VOLUMES,
} SandboxStartStage;

/* The sandbox as the state machine of pod-worker-sandbox.c drives it. */
typedef struct PodSandboxProgress {
        PodWorkerState state;
        PodWorkerState retry_state; /* WORKER_NO_SANDBOX, WORKER_READY or WORKER_SANDBOX_LOST */
        uint64_t retry_delay_usec;
        sd_event_source *timer; /* for the current state; removed when it changes */
        sd_event_source *network_check_timer;
        Child *cleanup;
        SandboxStartStage start_stage;
        bool is_lost;           /* the shim has exited; the next step frees the Sandbox */
        bool needs_cleanup;     /* an earlier agent left this pod, so a cleanup comes first */
        bool cleanup_is_whole;  /* the cleanup in progress removes everything */
        bool was_lost_in_setup; /* the shim exited before the pod was set up */
        bool is_unresponsive;   /* the shim does not replay its state */
        bool is_new;            /* this agent started the shim, and made the pod's cgroup */
        bool has_volumes;       /* their files are written */
} PodSandboxProgress;

struct PodWorker {
        PodInstance instance;
        PodSandboxProgress sandbox;
        PodContainers containers;
        PodTermination termination;
        sd_event_source *termination_timer; /* limits how long a terminating pod waits for its
                                             * shim */
        PodFailure failure;
        PodAdmission admission;
        AwaitedPods awaited;
        ActiveDeadline deadline;
        StorageMonitor storage;
        PodResize resize;
        bool resizes_started; /* a container was being created, possibly with earlier resources */
        PodVolumes volumes;
        TerminatedContainers terminated;
        bool has_unread_checkpoints; /* files of an earlier agent that are read again, not replaced
                                      */
        const PodStatus *status;     /* as of the end of the last step */
        char *last_error;            /* why the sandbox is not ready, for the status */
        bool is_only_awaited; /* the missing object is expected to arrive: this is not logged as an
                               * error */
        char *edit_error;     /* why the edited pod cannot start */
        bool is_selinux_warned;
        bool has_checked_csi; /* nothing about its CSI volumes has changed since the last check */
};

/* ---- pod-worker.c ---- */

/* Whether there is something left to run. */
bool pod_worker_should_run(PodWorker *worker);

/* Whether all containers must stop, and none may start. */
bool pod_worker_must_stop_containers(const PodWorker *worker);

/* Starts and stops the containers that are due. */
void pod_worker_sync_containers(PodWorker *worker);

/* Sets the last error; records an event for each error, and logs it once. NULL: none. */
void pod_worker_set_last_error(PodWorker *worker, const char *message);

/* Sets the message about something that the pod waits for, which is not an error and is only shown
 * in its status. */
void pod_worker_set_awaited(PodWorker *worker, const char *message);

/* Whether the pod is in the host network, or its network can be attached. If not, the pod waits,
 * which is reported. */
bool pod_worker_has_network(PodWorker *worker);

/* The grace period in microseconds: the shortest of those of the deletion, the failure and the
 * spec. */
uint64_t pod_worker_grace_period(const PodWorker *worker);

/* Arms a timer that kills the shim after the grace period and the time that a shim needs. */
void pod_worker_arm_termination(PodWorker *worker, uint64_t grace_usec);

/* Limits the remaining time of containers that are already being stopped, for any reason, to the
 * current grace period, counted from now. */
void pod_worker_shorten_grace(PodWorker *worker);

void pod_worker_update_volumes(PodWorker *worker);
void pod_worker_resize_cgroups(PodWorker *worker);

/* Requests the pod's systemd slice again if it was stopped. */
void pod_worker_restore_slices(PodWorker *worker);

/* Reads an earlier agent's state of failure, deletion and terminated containers. Unreadable files
 * are read again by the next call. 0 or -errno. */
int pod_worker_load_checkpoints(PodWorker *worker, Error *reterr);

/* Uses the information in logs and checkpoints for containers that no shim has. */
void pod_worker_recover_containers(PodWorker *worker);

/* Writes the checkpoint of the terminated containers; only for pods whose containers can complete,
 * and once the state of an earlier agent is known. A failure is logged, and the next step tries
 * again.
 */
void pod_worker_store_terminated_containers(PodWorker *worker);

/* ---- pod-worker-failure.c ---- */

/* Whether the node admits the pod. A pod of an API server that is not admitted fails. */
bool pod_worker_is_admitted(PodWorker *worker);

/* The pod has exceeded a storage limit, which the message describes. */
void pod_worker_exceed_storage_limit(const char *message, void *userdata);

/* Fails the pod if its activeDeadlineSeconds have passed. */
void pod_worker_enforce_deadline(PodWorker *worker);

/* ---- pod-worker-sandbox.c ---- */

/* Prepares the network of a pod that is not in the host network. 0 or -ENOMEM. */
int pod_worker_init_sandbox(PodWorker *worker);
void pod_worker_done_sandbox(PodWorker *worker);

/* Frees the Sandbox of a shim that has exited, and continues with the cleanup. */
void pod_worker_step_lost_sandbox(PodWorker *worker);

/* Does everything that is due in the current state. */
void pod_worker_step_sandbox(PodWorker *worker);

/* The only writer of the state. Removes the timer of the old state. */
void pod_worker_set_state(PodWorker *worker, PodWorkerState state);

/* Retries immediately if a retry is pending. */
void pod_worker_retry_now(PodWorker *worker);

/* Whether containers may run. */
bool pod_worker_sandbox_is_ready(const PodWorker *worker);

/* Whether the pod's cgroups and volumes exist: a shim for it is running, or about to start. */
bool pod_worker_is_set_up(const PodWorker *worker);

/* Gives up the shim: it is killed, and the pod starts again or is removed. */
void pod_worker_abandon_sandbox(PodWorker *worker, const char *why);
