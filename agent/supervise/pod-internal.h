/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the files of a pod's life share: pod.c steps it, effects.c acts for its containers,
 * pod-status.c tells. Nobody else includes this. */

#include "agent/image/image.h"
#include "agent/supervise/attachment.h"
#include "agent/supervise/container.h"
#include "agent/supervise/pod.h"

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

typedef struct PodContainer {
        PodLife *pod;
        const Container *spec;
        ContainerLife *life;
        Image *image;    /* of the attempt that is next */
        char *image_id;  /* of the attempt that runs or ran last */
        int stop_signal; /* likewise */
        ImageRequest *image_request;
        sd_event_source *retry_timer;
        Turn turn;
        Replayed latest;
        Replayed previous;
} PodContainer;

struct PodLife {
        PodContext *context;
        Pod *pod;
        char *description; /* "default/web-node1" */
        PodLifePhase phase;
        bool is_wanted;
        bool sandbox_is_lost;  /* the Sandbox is freed by the next step, not under its own feet */
        bool cleanup_is_whole; /* the cleanup under way spares nothing */
        bool must_clean;       /* before anything starts: an earlier agent left this pod */
        Sandbox *sandbox;
        Attachment *attachment; /* NULL in the node's network */
        Child *cleanup;
        sd_event_source *retry_timer;
        PodLifePhase retry_phase;
        bool retry_stays; /* the wait goes on when the pod is not wanted: that is what it is for */
        uint64_t retry_delay_usec;
        char *trouble; /* why the sandbox is not ready, for a person */
        PodContainer *containers;
        size_t n_containers;
        uint64_t start_time;
        uint64_t deletion_time;
        PodCondition conditions[N_POD_CONDITIONS]; /* as told last */
};

extern const ContainerDriver pod_container_driver;

void replayed_done(Replayed *replayed);
void pod_life_mark(PodLife *life);
void pod_life_set_trouble(PodLife *life, const char *message);

/* Asks the shim for the pod's mounts. */
void pod_life_ask_for_setup(PodLife *life);

/* Goes back to 'phase' after a while; each time it is a longer one. */
void pod_life_retry_later(PodLife *life, PodLifePhase phase);

/* An attachment for a pod that is not in the node's network, with what an earlier agent knew. */
int pod_life_make_attachment(PodLife *life);

/* There is a network that must be deleted one day. */
bool pod_life_has_network(const PodLife *life);

/* The mounts are made: on to the network, or to the containers. */
void pod_life_on_ready(PodLife *life);

/* Ends the shim; the network first, which the shim must run plugins for. */
void pod_life_end_sandbox(PodLife *life);

/* A shim was found or started, and is ready or not; or we are connected again, and it may not have
 * heard what we asked last. */
void pod_life_resume(PodLife *life, bool is_ready);

/* Starts a shim, in the node's network, that only runs the plugins which remove what the lost one
 * had. */
int pod_life_start_undertaker(PodLife *life, Error *reterr);

/* What the agent must know of an attempt that a successor of its finds running travels with it, as
 * the note of sandbox_run(). */
enum {
        NOTE_MAX = 160
};
void pod_container_print_note(const PodContainer *c, char note[NOTE_MAX]);
void pod_container_read_note(PodContainer *c, const char *note, uint64_t *ret_next_delay_usec);

/* Removes an attempt's remains through the shim, and the log of the attempt before it. */
void pod_container_remove(PodContainer *c, unsigned attempt);
