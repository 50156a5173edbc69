/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The life of one pod: level-triggered. pod_step() compares what is wanted with what is observed
 * and may be called at any time, twice, or after a restart. The containers within are machines of
 * their own. */

#include "agent/bundle/bundle.h"
#include "agent/image/image.h"
#include "agent/model/edit.h"
#include "agent/model/event.h"
#include "agent/model/eviction.h"
#include "agent/model/node.h"
#include "agent/model/probe-sample.h"
#include "agent/model/status.h"
#include "agent/network/network.h"
#include "agent/sandbox/sandbox.h"
#include "agent/supervise/classes.h"
#include "agent/supervise/decide.h"
#include "agent/supervise/turns.h"

typedef struct PodLife PodLife;

/* What all pods of an agent share. Everything is borrowed and outlives the pods. */
typedef struct PodContext {
        sd_event *event;
        const BundleConfig *bundle;
        const SandboxConfig *sandbox;
        const NetworkPlaces *network;
        Runtimes runtimes;
        ImageStore *images;
        Turns turns;
        BackOff back_off;
        uint64_t log_max_size;
        unsigned log_max_files;
        const char *host_ip;
        const NodeFacts *node;            /* what pods ask for before they are let in; or NULL */
        const NodeConditions *conditions; /* which keep some of them out; or NULL */
        /* The pod wants pod_step() soon; its status may be another. */
        void (*on_dirty)(void *owner, void *userdata);
        /* A container's attempt is over and its log complete; for those who follow it. */
        void (*on_log_ended)(const char *directory, unsigned attempt, void *userdata);
        /* Something happened that people like to know; see event_tell(). Or NULL. */
        void (*on_event)(const PodEvent *event, void *userdata);
        void *userdata;
        struct DirSync *disk; /* what is written down of pods is to survive a power cut; or NULL */
        struct Http *http;    /* for probes and hooks, made when it is first needed */
        int64_t burstable_milli_cpu; /* what all pods of that class ask for */
        uint64_t n_containers_started;
        unsigned n_network_checks;
        uint64_t n_containers_restarted;
        uint64_t n_start_errors;
} PodContext;

/* Takes the pod. 'was_recorded': an earlier agent had it, so something of it may be left. 'owner'
 * is what on_dirty() is told. */
int pod_life_new_take(PodContext *context, Pod *pod, bool was_recorded, void *owner, PodLife **ret);

/* Forgets the pod; its shim and containers go on. */
PodLife *pod_life_free(PodLife *life);

/* Wanted or not. Who is not wanted any more never is again: a pod that comes back is another life.
 */
void pod_life_unwant(PodLife *life);
bool pod_life_is_wanted(const PodLife *life);

/* It is wanted, and which attempts its containers are at is known. */
bool pod_life_is_editable(const PodLife *life);

/* It has succeeded or failed, for good. */
bool pod_life_has_ended(PodLife *life);

/* It has failed as a whole: it was evicted, or its time was over. */
bool pod_life_has_failed(const PodLife *life);

/* One of its containers runs, is being created or being stopped. */
bool pod_life_has_processes(const PodLife *life);

/* One of its containers has run, or was tried. */
bool pod_life_has_begun(const PodLife *life);

/* For the record: which attempts began by an older spec; with a plan, as it will be after it. The
 * caller frees it; NULL where memory ends. */
char *pod_life_print_outdated(const PodLife *life, const EditPlan *plan);
void pod_life_read_outdated(PodLife *life, const char *text);

/* Takes the pod in the place of its own: the same UID, the same containers, and the plan, which
 * replaces nothing, says what is another. The record is written. */
void pod_life_edit_take(PodLife *life, Pod *pod, const EditPlan *plan);

/* Why the pod that is to follow it cannot yet; NULL: nothing is to follow. */
void pod_life_set_edit_trouble(PodLife *life, const char *message);

/* As pod_life_unwant(), with another grace period (-1: the pod's own). Said again, a shorter one
 * counts. Another life may follow at once; see pod_begin_anew(). */
void pod_life_delete(PodLife *life, int64_t grace_seconds);

/* The machine goes down: its containers are stopped, with at most this long to end, and nothing of
 * it starts again before the next boot. One that has ended already stays as it is. */
void pod_life_shut_down(PodLife *life, uint64_t grace_usec);

/* It does not go down after all: what the above stopped begins again, with all that its volumes
 * hold, once what is under way has ended. */
void pod_life_go_on(PodLife *life);

/* A pod that is to begin now, not when its manifest was read. 0 or -ENOMEM. */
int pod_begin_anew(Pod *pod);

/* Does what is due. */
void pod_step(PodLife *life);

/* Containers that wait for an image look again at once. */
void pod_life_images_changed(PodLife *life);

/* ConfigMaps, Secrets or the pod's labels may be others: volumes follow, and what waits for one
 * looks again at once. */
void pod_life_objects_changed(PodLife *life);

/* True when nothing is left of a pod that is not wanted. */
bool pod_life_is_gone(const PodLife *life);

/* False between a restart of the agent and the shim's answer, or the discovery that there is no
 * shim; neither who does not answer nor what is being cleaned up is waited for. */
bool pod_life_is_synced(const PodLife *life);

const Pod *pod_life_pod(const PodLife *life);

/* What has come of its probes. */
void pod_life_each_probe(const PodLife *life, probe_sample_t each, void *userdata);

/* The status as of now. 0 with a status that the caller ends by pod_status_done(), or -ENOMEM. */
int pod_life_status(PodLife *life, PodStatus *ret);

/* A session in a container, on a socket; -EBADF: only asks whether it could be. 0; -ENOENT, -EAGAIN
 * where it does not run, another -errno, with a sentence. The session's container is filled in. */
int pod_life_session(PodLife *life, const char *container, const SandboxSession *session,
                     int socket_fd, Error *reterr);

/* The log directory and attempt that is the latest with a log (or the one before). -ENOENT,
 * -EAGAIN. */
int pod_life_find_log(PodLife *life, const char *container, bool previous, char **ret_directory,
                      unsigned *ret_attempt, bool *ret_is_live, Error *reterr);
