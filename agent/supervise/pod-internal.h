/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the files of a pod's life share: pod.c steps it, pod-order.c starts and ends its containers
 * in their order, deadline.c ends those that may not run for ever, pod-events.c hears its shim,
 * pod-network.c attaches it, effects.c acts for its containers, pod-status.c tells, pod-logs.c
 * finds logs. Nobody else includes this. */

#include "agent/image/image.h"
#include "agent/model/eviction.h"
#include "agent/supervise/attachment.h"
#include "agent/supervise/container.h"
#include "agent/supervise/order.h"
#include "agent/supervise/pod.h"
#include "agent/supervise/prober.h"
#include "common/log.h"

typedef enum PodLifePhase {
        PHASE_NONE,       /* no shim that we know of */
        PHASE_SYNCING,    /* connected, it is telling what it knows */
        PHASE_SETTING_UP, /* its mounts are being made */
        PHASE_ATTACHING,  /* its network is being made */
        PHASE_READY,      /* containers may run */
        PHASE_DETACHING,  /* nothing runs any more, its network is being removed */
        PHASE_ENDING,     /* the shim has been told to end */
        PHASE_LOST,       /* the shim is gone; what it left is not cleaned up yet */
        PHASE_CLEANING,   /* a child cleans up */
        PHASE_RETRY,      /* something failed; the timer goes back to PHASE_NONE or PHASE_LOST */
        PHASE_GONE,       /* nothing is left */
} PodLifePhase;

/* What the shim told of an attempt, kept until it has told all. */
typedef struct Replayed {
        bool is_known;
        SandboxEventType type;
        unsigned attempt;
        bool is_deleted;
        bool runtime_failed;
        ContainerExit exit;
        char *message;
        char *note;
} Replayed;

struct PodContainer {
        PodLife *pod;
        const Container *spec;
        ContainerLife *life;
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
        Turn turn;
        sd_event_source *turn_timer;
        bool is_outdated; /* attempts up to this one began by an older spec: */
        unsigned outdated_attempt;
        Probers probers;
        Action *hook; /* that is under way */
        ContainerHook hook_kind;
        uint64_t stop_began_at; /* boottime: its preStop hook; 0: it had none */
        OptionalInt kill_grace; /* seconds; where it is not stopped for good */
        Replayed latest;
        Replayed previous;
};

/* Why the pod has failed as a whole. */
typedef struct PodFailure {
        char *reason; /* NULL: it has not */
        char *message;
        uint64_t grace_usec; /* for its containers, if that is less than the pod's; 0: the pod's */
        bool is_passing;     /* until the next boot */
        uint64_t evicted_at; /* realtime, where the node was short of something; 0: it was not … */
        NodeCondition condition; /* … and had this therefore */
} PodFailure;

/* All containers are ended, and the pod begins again in the sandbox that it has. */
typedef enum AllRestart {
        ALL_RESTART_NONE,
        ALL_RESTART_ENDING,
        ALL_RESTART_HOLDING, /* all have ended; what is left of the back-off is sat out */
} AllRestart;

struct PodLife {
        PodContext *context;
        void *owner; /* what on_dirty() is told */
        Pod *pod;
        char *description; /* "default/web-node1" */
        PodLifePhase phase;
        bool is_wanted;
        bool has_grace;        /* a person has said how long its containers have to end */
        int64_t grace_seconds; /* if so */
        bool sandbox_is_lost;  /* the Sandbox is freed by the next step, not under its own feet */
        bool cleanup_is_whole; /* the cleanup under way spares nothing */
        bool was_lost_early;   /* by now its shim should have set it up */
        bool is_mute;          /* its shim does not tell what it knows */
        bool must_clean;       /* before anything starts: an earlier agent left this pod */
        Sandbox *sandbox;
        Attachment *attachment; /* NULL in the node's network */
        Child *cleanup;
        sd_event_source *timer;     /* of the phase; goes with it */
        sd_event_source *end_timer; /* the patience with an unwanted pod's shim */
        PodLifePhase retry_phase;
        uint64_t retry_delay_usec;
        PodFailure failure;
        char *ends;     /* of its containers, as they are on disk; NULL: none */
        int ends_error; /* they could not be written; as it was logged */
        bool told_of_labels;
        sd_event_source *storage_timer; /* then what it has written is measured */
        Child *storage_child;
        char *stale;           /* why a volume is not what it should be, as it was logged */
        const char *rejection; /* the reason why the node does not begin it; NULL: it does */
        char *rejection_message;
        char *trouble;        /* why the sandbox is not ready, for a person */
        char *edit_trouble;   /* why its successor cannot begin */
        char *resize_trouble; /* why its groups are not as its spec says */
        sd_event_source *resize_timer;
        sd_event_source *check_timer; /* then its network is looked at */
        uint64_t resize_delay_usec;
        PodContainer *containers; /* as pod_nth_container() */
        size_t n_containers;
        OrderEntry *order; /* of each container, as it was looked at last */
        AllRestart all_restart;
        unsigned generation;          /* how often all were restarted */
        sd_event_source *order_timer; /* the end of ALL_RESTART_HOLDING */
        uint64_t ending_since;        /* boot time; 0: nothing ends it */
        sd_event_source *deadline_timer;
        uint64_t start_time;
        uint64_t deletion_time;
        PodCondition conditions[N_POD_CONDITIONS]; /* as told last */
};

extern const ContainerDriver pod_container_driver;
extern const char pod_seen_annotation[]; /* when the pod began, as the kubelet says it */

/* What is logged of it; 'container' may be NULL. */
LogSubject pod_life_subject(const PodLife *life, const char *container);

void pod_life_mark(PodLife *life);
void pod_life_set_trouble(PodLife *life, const char *message);

/* admission.c: as the kubelet asks before a pod of a file begins: is the node one that its
 * nodeSelector and its required affinity want? Taints are not asked. And has the node what it
 * takes? That is asked of pods that never ran. */
bool pod_life_is_admitted(PodLife *life);

/* objects.c: its groups and volumes were made when it began; a shim of it runs, or is about to. */
bool pod_life_is_prepared(const PodLife *life);

/* Volumes that are made of objects and of the pod's own fields. */
void pod_life_update_volumes(PodLife *life);

/* pod-edit.c: groups as the spec says; again after a while where that cannot be. */
void pod_life_resize(PodLife *life);

/* Looks whether somebody has stopped the pod's slice, and has it made again. */
void pod_life_restore_slices(PodLife *life);
void pod_life_restart_outdated(PodLife *life);
bool pod_container_is_outdated(const PodContainer *c); /* what runs began by an older spec */

/* Whether containers may be run now. */
bool pod_life_is_ready(const PodLife *life);

/* pod-failure.c: nothing of the pod starts any more; what runs is stopped. For good: the next agent
 * knows it, too. */
void pod_life_fail(PodLife *life, PodEventKind kind, const char *reason, const char *message,
                   uint64_t grace_usec);
void pod_life_load_failure(PodLife *life);

/* The same because the node is short of something: until it is not any more. */
void pod_life_evict(PodLife *life, NodeCondition condition, const char *message,
                    uint64_t grace_usec);
bool pod_life_is_evicted(const PodLife *life);
void pod_failure_done(PodFailure *failure);

/* pod-ends.c: on disk it is known who has ended for good, and how. */
void pod_life_keep_ends(PodLife *life);
void pod_life_load_ends(PodLife *life);

/* The attempt's end, if an earlier agent kept it. */
bool pod_container_recover_end(PodContainer *c, unsigned attempt);

/* The pod's directory of the state, for its sealed files. A descriptor or -errno. */
int pod_life_open_state(const PodLife *life);

/* pod-delete.c: an earlier agent was told to end the pod: so it ends. */
void pod_life_load_deletion(PodLife *life);

/* The pod's end was asked for; its shim is not waited for without end. */
void pod_life_limit_end(PodLife *life, uint64_t grace_usec);

/* pod-storage.c: looks at what the pod writes while that is limited and it runs. May be called at
 * any time. */
void pod_life_watch_storage(PodLife *life);
void pod_life_forget_storage(PodLife *life);

/* The one writer of the phase. What a timer was to do in the old one is forgotten. */
void pod_life_set_phase(PodLife *life, PodLifePhase phase);

/* Its shim is given up: it is ended, and the pod starts anew, or is gone. */
void pod_life_lose_sandbox(PodLife *life, const char *why);

/* Goes to the phase after a while, each time a longer one until the pod is set up. */
void pod_life_retry_later(PodLife *life, PodLifePhase phase);

/* pod-events.c: a sandbox_event_t, and what of it is used elsewhere. */
void pod_life_on_event(Sandbox *sandbox, const SandboxEvent *event, void *userdata);
void pod_life_ask_for_setup(PodLife *life);
void pod_life_end_containers(PodLife *life); /* their shim is gone; may be said twice */
void pod_container_forget_replay(PodContainer *c);
PodContainer *pod_life_find_container(PodLife *life, const char *name);

/* pod-order.c: starts and ends what is due, as often as it is asked. */
void pod_life_follow_order(PodLife *life);
PodCourse pod_life_course(PodLife *life);

/* Whoever has a process ends, and nobody is started. */
bool pod_life_is_ending(const PodLife *life);

/* There is something left to run. */
bool pod_life_goes_on(PodLife *life);

/* What waited by itself may go on now. */
bool pod_life_lets_start(PodContainer *c);

/* There is no sandbox any more: in the next one all begins with init. */
void pod_life_forget_order(PodLife *life);

/* A new agent has taken up all containers: those that are of before a restart of all wait for their
 * turn. */
void pod_life_adopt_order(PodLife *life);

/* How long the pod's containers have to end, all together; and one that is told to only now,
 * between SIGTERM and SIGKILL. */
uint64_t pod_life_grace_usec(const PodLife *life);
uint64_t pod_life_rest_of_grace_usec(const PodLife *life);

/* deadline.c: sees to the pod's activeDeadlineSeconds. */
void pod_life_watch_deadline(PodLife *life);

/* pod-images.c: a driver's get_image(); those of volumes first, then the container's own. */
void pod_container_get_images(void *userdata);
void pod_container_forget_volume_images(PodContainer *c);

/* pod-network.c: an attachment for a pod that is not in the node's network, with what an earlier
 * agent knew. */
int pod_life_make_attachment(PodLife *life);

/* There is a network that must be deleted one day. */
bool pod_life_has_network(const PodLife *life);

/* The mounts are made: on to the network, or to the containers. */
void pod_life_on_ready(PodLife *life);

/* Ends the shim; the network first, which the shim must run plugins for. */
void pod_life_end_sandbox(PodLife *life);

/* A shim was found or started, and is ready or not; or we are connected again, and it may not have
 * heard what we asked last. 'has_run': it knows of containers, which run, or ran, in the network
 * that it has. */
void pod_life_resume(PodLife *life, bool is_ready, bool has_run);

/* Starts a shim, in the node's network, that only runs the plugins which remove what the lost one
 * had. */
int pod_life_start_undertaker(PodLife *life, Error *reterr);

/* The shim that is there is one of these. */
bool pod_life_has_undertaker(const PodLife *life);

/* Of a container that no shim knows of but that has logs: it ran, and nobody saw its end. */
void pod_container_recover(PodContainer *c);

/* note.c: what the agent must know of an attempt that a successor of its finds running travels with
 * it, as the note of sandbox_run(). */
enum {
        NOTE_MAX = 256
};
typedef struct AttemptNote {
        uint64_t next_delay_usec;
        bool has_post_started;
        bool has_started;
        bool is_ready;
        bool is_killed;
} AttemptNote;
void pod_container_print_note(const PodContainer *c, char note[NOTE_MAX]);
void pod_container_read_note(PodContainer *c, const char *note, AttemptNote *ret);
void pod_container_update_note(PodContainer *c); /* it has changed: the shim hears of it */

/* hook.c: of the driver, and what probes and hooks are done to. 'id' is what the target's lies in.
 */
void pod_container_stop(void *userdata, unsigned attempt, bool for_good);
void pod_container_hurry(void *userdata); /* who is being stopped has what the pod has left */
void pod_container_run_hook(void *userdata, ContainerHook hook, unsigned attempt, bool for_good);
void pod_container_drop_hook(void *userdata);
ActionTarget pod_container_target(PodContainer *c, char id[65]);

/* Ends the present attempt, with a grace of its own (unset: the pod's), and says why. */
void pod_container_kill(PodContainer *c, const OptionalInt *grace, const char *why);

/* The end of an attempt, with its last words. */
void pod_container_on_exited(PodContainer *c, unsigned attempt, const ContainerExit *end);

/* Removes an attempt's remains through the shim, and the logs of those before it. */
void pod_container_remove(PodContainer *c, unsigned attempt);

/* ---- images.c: a container's own image ---- */

void pod_container_get_own_image(PodContainer *c);
void pod_container_drop_image(void *userdata);

/* An image of the container has come further: 'userdata' is the container. */
void pod_container_on_progress(void *userdata);

/* A sentence of how the pull goes, which the caller frees; NULL where there is none. */
char *pod_container_pull_progress(const PodContainer *c);
