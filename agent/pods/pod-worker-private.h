/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the files of a pod's life share: pod.c steps it, pod-order.c starts and ends its containers
 * in their order, deadline.c ends those that may not run for ever, pod-events.c hears its shim,
 * pod-network.c attaches it, effects.c acts for its containers, pod-status.c tells, pod-logs.c
 * finds logs. Nobody else includes this. */

#include "agent/image/image-store.h"
#include "agent/model/eviction.h"
#include "agent/pods/container-probes.h"
#include "agent/pods/container/container-machine.h"
#include "agent/pods/container/container-order.h"
#include "agent/pods/network-attachment.h"
#include "agent/pods/pod-worker.h"
#include "common/log.h"

typedef enum PodWorkerState {
        WORKER_NO_SANDBOX,   /* no shim that we know of */
        WORKER_SYNCING,      /* connected, it is telling what it knows */
        WORKER_SETTING_UP,   /* its mounts are being made */
        WORKER_ATTACHING,    /* its network is being made */
        WORKER_READY,        /* containers may run */
        WORKER_DETACHING,    /* nothing runs any more, its network is being removed */
        WORKER_TEARING_DOWN, /* the shim has been told to end */
        WORKER_SANDBOX_LOST, /* the shim is gone; what it left is not cleaned up yet */
        WORKER_CLEANING_UP,  /* a child cleans up */
        WORKER_RETRY_WAIT,   /* something failed; the timer goes back to WORKER_NO_SANDBOX or
                                WORKER_SANDBOX_LOST */
        WORKER_REMOVED,      /* nothing is left */
} PodWorkerState;

/* What the shim told of an attempt, kept until it has told all. */
typedef struct ReplayedAttempt {
        bool is_known;
        SandboxEventType type;
        unsigned attempt;
        bool is_deleted;
        bool runtime_failed;
        ContainerExit exit;
        char *message;
        char *note;
} ReplayedAttempt;

struct PodContainer {
        PodWorker *pod;
        const Container *spec;
        ContainerMachine *machine;
        Image *image;       /* of the attempt that is next */
        char *image_id;     /* of the attempt that runs or ran last */
        char *image_name;   /* likewise, as its spec had it; NULL: an earlier agent ran it */
        int stop_signal;    /* likewise */
        ContainerUser user; /* likewise, once it was asked for: */
        unsigned user_attempt;
        unsigned generation; /* of the attempt that runs or ran last; of the pod's, when it was run
                              */
        bool has_run;        /* in this sandbox, and since all were restarted */
        ImageRequest *image_request;
        unsigned image_failures; /* in a row */
        bool is_pulling;         /* the request went to a registry */
        uint64_t image_asked_at; /* boot time */
        Image **volume_images;   /* by the pod's volumes; NULL for those that it does not mount */
        size_t n_volume_images;
        size_t volume_at; /* which of them is asked for */
        sd_event_source *retry_timer;
        StartSlot start_slot;
        sd_event_source *start_slot_timer;
        bool is_outdated; /* attempts up to this one began by an older spec: */
        unsigned outdated_attempt;
        ContainerProbes probers;
        HandlerRun *hook_run; /* that is under way */
        ContainerHook hook_kind;
        uint64_t stop_began_at; /* boottime: its preStop hook; 0: it had none */
        OptionalInt kill_grace; /* seconds; where it is not stopped for good */
        ReplayedAttempt latest;
        ReplayedAttempt previous;
};

/* Why the pod has failed as a whole. */
typedef struct PodFailure {
        char *reason; /* NULL: it has not */
        char *message;
        uint64_t grace_usec;  /* for its containers, if that is less than the pod's; 0: the pod's */
        bool is_until_reboot; /* until the next boot */
        uint64_t evicted_at; /* realtime, where the node was short of something; 0: it was not … */
        NodeCondition condition; /* … and had this therefore */
} PodFailure;

/* All containers are ended, and the pod begins again in the sandbox that it has. */
typedef enum RestartAllState {
        RESTART_ALL_NONE,
        RESTART_ALL_STOPPING,
        RESTART_ALL_BACK_OFF, /* all have ended; what is left of the back-off is sat out */
} RestartAllState;

struct PodWorker {
        PodContext *context;
        void *owner; /* what on_dirty() is told */
        Pod *pod;
        char *description; /* "default/web-node1" */
        PodWorkerState state;
        bool is_desired;
        bool has_grace;         /* a person has said how long its containers have to end */
        int64_t grace_seconds;  /* if so */
        bool sandbox_is_lost;   /* the Sandbox is freed by the next step, not under its own feet */
        bool cleanup_is_whole;  /* the cleanup under way spares nothing */
        bool was_lost_in_setup; /* by now its shim should have set it up */
        bool is_unresponsive;   /* its shim does not tell what it knows */
        bool needs_cleanup;     /* before anything starts: an earlier agent left this pod */
        Sandbox *sandbox;
        NetworkAttachment *attachment; /* NULL in the node's network */
        Child *cleanup;
        sd_event_source *timer;             /* of the phase; goes with it */
        sd_event_source *termination_timer; /* the patience with an unwanted pod's shim */
        PodWorkerState retry_state;
        uint64_t retry_delay_usec;
        PodFailure failure;
        char *terminated;     /* of its containers, as they are on disk; NULL: none */
        int terminated_error; /* they could not be written; as it was logged */
        bool is_selinux_warned;
        sd_event_source *storage_timer; /* then what it has written is measured */
        Child *storage_child;
        char *volume_error;           /* why a volume is not what it should be, as it was logged */
        const char *rejection_reason; /* the reason why the node does not begin it; NULL: it does */
        char *rejection_message;
        char *last_error;   /* why the sandbox is not ready, for a person */
        char *edit_error;   /* why its successor cannot begin */
        char *resize_error; /* why its groups are not as its spec says */
        sd_event_source *resize_timer;
        sd_event_source *network_check_timer; /* then its network is looked at */
        uint64_t resize_delay_usec;
        PodContainer *containers; /* as pod_nth_container() */
        size_t n_containers;
        ContainerOrderEntry *container_order; /* of each container, as it was looked at last */
        RestartAllState restart_all;
        unsigned generation;                /* how often all were restarted */
        sd_event_source *restart_all_timer; /* the end of RESTART_ALL_BACK_OFF */
        uint64_t stopping_since;            /* boot time; 0: nothing ends it */
        sd_event_source *deadline_timer;
        uint64_t start_time;
        uint64_t deletion_time;
        PodCondition conditions[N_POD_CONDITIONS]; /* as told last */
};

extern const ContainerDriver pod_container_driver;
extern const char config_seen_annotation[]; /* when the pod began, as the kubelet says it */

/* What is logged of it; 'container' may be NULL. */
LogSubject pod_worker_log_subject(const PodWorker *worker, const char *container);

void pod_worker_mark_dirty(PodWorker *worker);
void pod_worker_set_last_error(PodWorker *worker, const char *message);

/* admission.c: as the kubelet asks before a pod of a file begins: is the node one that its
 * nodeSelector and its required affinity want? Taints are not asked. And has the node what it
 * takes? That is asked of pods that never ran. */
bool pod_worker_is_admitted(PodWorker *worker);

/* objects.c: its groups and volumes were made when it began; a shim of it runs, or is about to. */
bool pod_worker_is_set_up(const PodWorker *worker);

/* Volumes that are made of objects and of the pod's own fields. */
void pod_worker_update_volumes(PodWorker *worker);

/* pod-edit.c: groups as the spec says; again after a while where that cannot be. */
void pod_worker_resize_cgroups(PodWorker *worker);

/* Looks whether somebody has stopped the pod's slice, and has it made again. */
void pod_worker_restore_slices(PodWorker *worker);
void pod_worker_restart_outdated(PodWorker *worker);
bool pod_container_is_outdated(const PodContainer *c); /* what runs began by an older spec */

/* Whether containers may be run now. */
bool pod_worker_sandbox_is_ready(const PodWorker *worker);

/* pod-failure.c: nothing of the pod starts any more; what runs is stopped. For good: the next agent
 * knows it, too. */
void pod_worker_fail(PodWorker *worker, PodEventKind kind, const char *reason, const char *message,
                     uint64_t grace_usec);
void pod_worker_load_failure(PodWorker *worker);

/* The same because the node is short of something: until it is not any more. */
void pod_worker_evict(PodWorker *worker, NodeCondition condition, const char *message,
                      uint64_t grace_usec);
bool pod_worker_is_evicted(const PodWorker *worker);
void pod_failure_done(PodFailure *failure);

/* pod-ends.c: on disk it is known who has ended for good, and how. */
void pod_worker_store_terminated(PodWorker *worker);
void pod_worker_load_terminated(PodWorker *worker);

/* The attempt's end, if an earlier agent kept it. */
bool pod_container_recover_terminated(PodContainer *c, unsigned attempt);

/* The pod's directory of the state, for its sealed files. A descriptor or -errno. */
int pod_worker_open_state_dir(const PodWorker *worker);

/* pod-delete.c: an earlier agent was told to end the pod: so it ends. */
void pod_worker_load_deletion(PodWorker *worker);

/* The pod's end was asked for; its shim is not waited for without end. */
void pod_worker_arm_termination_timer(PodWorker *worker, uint64_t grace_usec);

/* pod-storage.c: looks at what the pod writes while that is limited and it runs. May be called at
 * any time. */
void pod_worker_monitor_storage(PodWorker *worker);
void pod_worker_stop_storage_monitor(PodWorker *worker);

/* The one writer of the phase. What a timer was to do in the old one is forgotten. */
void pod_worker_set_state(PodWorker *worker, PodWorkerState state);

/* Its shim is given up: it is ended, and the pod starts anew, or is gone. */
void pod_worker_abandon_sandbox(PodWorker *worker, const char *why);

/* Goes to the phase after a while, each time a longer one until the pod is set up. */
void pod_worker_retry_later(PodWorker *worker, PodWorkerState state);

/* pod-events.c: a sandbox_event_t, and what of it is used elsewhere. */
void pod_worker_on_sandbox_event(Sandbox *sandbox, const SandboxEvent *event, void *userdata);
void pod_worker_request_sandbox_setup(PodWorker *worker);
void pod_worker_lose_containers(PodWorker *worker); /* their shim is gone; may be said twice */
void pod_container_discard_replayed(PodContainer *c);
PodContainer *pod_worker_find_container(PodWorker *worker, const char *name);

/* pod-order.c: starts and ends what is due, as often as it is asked. */
void pod_worker_sync_containers(PodWorker *worker);
PodProgress pod_worker_progress(PodWorker *worker);

/* Whoever has a process ends, and nobody is started. */
bool pod_worker_must_stop_containers(const PodWorker *worker);

/* There is something left to run. */
bool pod_worker_should_run(PodWorker *worker);

/* What waited by itself may go on now. */
bool pod_worker_may_start_container(PodContainer *c);

/* There is no sandbox any more: in the next one all begins with init. */
void pod_worker_reset_order(PodWorker *worker);

/* A new agent has taken up all containers: those that are of before a restart of all wait for their
 * turn. */
void pod_worker_adopt_order(PodWorker *worker);

/* How long the pod's containers have to end, all together; and one that is told to only now,
 * between SIGTERM and SIGKILL. */
uint64_t pod_worker_grace_usec(const PodWorker *worker);
uint64_t pod_worker_remaining_grace_usec(const PodWorker *worker);

/* deadline.c: sees to the pod's activeDeadlineSeconds. */
void pod_worker_enforce_deadline(PodWorker *worker);

/* pod-images.c: a driver's get_image(); those of volumes first, then the container's own. */
void pod_container_request_images(void *userdata);
void pod_container_release_volume_images(PodContainer *c);

/* pod-network.c: an attachment for a pod that is not in the node's network, with what an earlier
 * agent knew. */
int pod_worker_new_attachment(PodWorker *worker);

/* There is a network that must be deleted one day. */
bool pod_worker_has_network(const PodWorker *worker);

/* The mounts are made: on to the network, or to the containers. */
void pod_worker_on_sandbox_ready(PodWorker *worker);

/* Ends the shim; the network first, which the shim must run plugins for. */
void pod_worker_tear_down_sandbox(PodWorker *worker);

/* A shim was found or started, and is ready or not; or we are connected again, and it may not have
 * heard what we asked last. 'has_run': it knows of containers, which run, or ran, in the network
 * that it has. */
void pod_worker_resume_sandbox(PodWorker *worker, bool is_ready, bool has_run);

/* Starts a shim, in the node's network, that only runs the plugins which remove what the lost one
 * had. */
int pod_worker_start_teardown_sandbox(PodWorker *worker, Error *reterr);

/* The shim that is there is one of these. */
bool pod_worker_has_teardown_sandbox(const PodWorker *worker);

/* Of a container that no shim knows of but that has logs: it ran, and nobody saw its end. */
void pod_container_recover_attempt(PodContainer *c);

/* note.c: what the agent must know of an attempt that a successor of its finds running travels with
 * it, as the note of sandbox_run_container(). */
enum {
        ATTEMPT_CHECKPOINT_MAX = 256
};
typedef struct AttemptCheckpoint {
        uint64_t next_delay_usec;
        bool has_post_started;
        bool has_started;
        bool is_ready;
        bool is_killed;
} AttemptCheckpoint;
void pod_container_print_checkpoint(const PodContainer *c, char note[ATTEMPT_CHECKPOINT_MAX]);
void pod_container_parse_checkpoint(PodContainer *c, const char *note, AttemptCheckpoint *ret);
void pod_container_update_checkpoint(PodContainer *c); /* it has changed: the shim hears of it */

/* hook.c: of the driver, and what probes and hooks are done to. 'id' is what the target's lies in.
 */
void pod_container_stop(void *userdata, unsigned attempt, bool for_good);
void pod_container_shorten_grace(
        void *userdata); /* who is being stopped has what the pod has left */
void pod_container_run_hook(void *userdata, ContainerHook hook, unsigned attempt, bool for_good);
void pod_container_cancel_hook(void *userdata);
HandlerTarget pod_container_handler_target(PodContainer *c, char id[65]);

/* Ends the present attempt, with a grace of its own (unset: the pod's), and says why. */
void pod_container_kill(PodContainer *c, const OptionalInt *grace, const char *why);

/* The end of an attempt, with its last words. */
void pod_container_on_exited(PodContainer *c, unsigned attempt, const ContainerExit *end);

/* Removes an attempt's remains through the shim, and the logs of those before it. */
void pod_container_remove_attempt(PodContainer *c, unsigned attempt);

/* ---- images.c: a container's own image ---- */

void pod_container_request_own_image(PodContainer *c);
void pod_container_cancel_image_request(void *userdata);

/* An image of the container has come further: 'userdata' is the container. */
void pod_container_on_pull_progress(void *userdata);

/* A sentence of how the pull goes, which the caller frees; NULL where there is none. */
char *pod_container_pull_progress(const PodContainer *c);
