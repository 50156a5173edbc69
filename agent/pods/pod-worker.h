/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The life of one pod: level-triggered. pod_worker_step() compares what is wanted with what is
 * observed and may be called at any time, twice, or after a restart. The containers within are
 * machines of their own. */

#include "agent/bundle/bundle.h"
#include "agent/cni/cni.h"
#include "agent/image/image-store.h"
#include "agent/model/edit-plan.h"
#include "agent/model/event.h"
#include "agent/model/eviction.h"
#include "agent/model/node.h"
#include "agent/model/probe-sample.h"
#include "agent/model/status.h"
#include "agent/pods/container/restart-policy.h"
#include "agent/pods/container/start-limiter.h"
#include "agent/pods/pod-classes.h"
#include "agent/sandbox/sandbox.h"

typedef struct PodWorker PodWorker;

/* What all pods of an agent share. Everything is borrowed and outlives the pods. */
typedef struct PodContext {
        sd_event *event;
        const BundleConfig *bundle;
        const SandboxConfig *sandbox;
        const CniPaths *network;
        OciRuntimes runtimes;
        ImageStore *images;
        StartLimiter start_limiter;
        BackOffLimits back_off;
        uint64_t log_max_size;
        unsigned log_max_files;
        const char *host_ip;
        const NodeLabelsTaints *node;     /* what pods ask for before they are let in; or NULL */
        const NodeConditions *conditions; /* which keep some of them out; or NULL */
        /* The pod wants pod_worker_step() soon; its status may be another. */
        void (*on_dirty)(void *owner, void *userdata);
        /* A container's attempt is over and its log complete; for those who follow it. */
        void (*on_log_ended)(const char *directory, unsigned attempt, void *userdata);
        /* Something happened that people like to know; see record_pod_event(). Or NULL. */
        void (*on_event)(const PodEvent *event, void *userdata);
        void *userdata;
        struct FsyncQueue
                *state_sync; /* what is written down of pods is to survive a power cut; or NULL */
        struct HttpClient *http;     /* for probes and hooks, made when it is first needed */
        int64_t burstable_milli_cpu; /* what all pods of that class ask for */
        uint64_t n_containers_started;
        unsigned n_network_checks;
        uint64_t n_containers_restarted;
        uint64_t n_start_errors;
} PodContext;

/* Takes the pod. 'was_recorded': an earlier agent had it, so something of it may be left. 'owner'
 * is what on_dirty() is told. */
int pod_worker_new_take(PodContext *context, Pod *pod, bool was_recorded, void *owner,
                        PodWorker **ret);

/* Forgets the pod; its shim and containers go on. */
PodWorker *pod_worker_free(PodWorker *worker);

/* Stops the pod; 'reason' is logged and recorded as an event (NULL: an earlier agent did so). It
 * cannot be undone: a pod of the same name that is desired later is another instance. */
void pod_worker_terminate(PodWorker *worker, const char *reason);
bool pod_worker_is_desired(const PodWorker *worker);

/* It is wanted, and which attempts its containers are at is known. */
bool pod_worker_is_editable(const PodWorker *worker);

/* It has succeeded or failed, for good. */
bool pod_worker_has_terminated(PodWorker *worker);

/* It has failed as a whole: it was evicted, or its time was over. */
bool pod_worker_has_failed(const PodWorker *worker);

/* One of its containers runs, is being created or being stopped. */
bool pod_worker_has_processes(const PodWorker *worker);

/* One of its containers has run, or was tried. */
bool pod_worker_has_started(const PodWorker *worker);

/* For the record: which attempts began by an older spec; with a plan, as it will be after it. The
 * caller frees it; NULL where memory ends. */
char *pod_worker_print_outdated(const PodWorker *worker, const EditPlan *plan);
void pod_worker_parse_outdated(PodWorker *worker, const char *text);

/* Takes the pod in the place of its own: the same UID, the same containers, and the plan, which
 * replaces nothing, says what is another. The record is written. */
void pod_worker_apply_edit_take(PodWorker *worker, Pod *pod, const EditPlan *plan);

/* Why the pod that is to follow it cannot yet; NULL: nothing is to follow. */
void pod_worker_set_edit_error(PodWorker *worker, const char *message);

/* As pod_worker_terminate(), with another grace period (-1: the pod's own). Said again, a shorter
 * one counts. Another life may follow at once; see pod_reset_config_seen(). */
void pod_worker_delete(PodWorker *worker, int64_t grace_seconds, const char *reason);

/* The machine goes down: its containers are stopped, with at most this long to end, and nothing of
 * it starts again before the next boot. One that has ended already stays as it is. */
void pod_worker_shut_down(PodWorker *worker, uint64_t grace_usec);

/* It does not go down after all: what the above stopped begins again, with all that its volumes
 * hold, once what is under way has ended. */
void pod_worker_cancel_shutdown(PodWorker *worker);

/* A pod that is to begin now, not when its manifest was read. 0 or -ENOMEM. */
int pod_reset_config_seen(Pod *pod);

/* Does what is due. */
void pod_worker_step(PodWorker *worker);

/* Containers that wait for an image look again at once. */
void pod_worker_on_images_changed(PodWorker *worker);

/* ConfigMaps, Secrets or the pod's labels may be others: volumes follow, and what waits for one
 * looks again at once. */
void pod_worker_on_objects_changed(PodWorker *worker);

/* True when nothing is left of a pod that is not wanted. */
bool pod_worker_is_removed(const PodWorker *worker);

/* False between a restart of the agent and the shim's answer, or the discovery that there is no
 * shim; neither who does not answer nor what is being cleaned up is waited for. */
bool pod_worker_is_synced(const PodWorker *worker);

const Pod *pod_worker_pod(const PodWorker *worker);

/* What has come of its probes. */
void pod_worker_for_each_probe(const PodWorker *worker, probe_sample_t each, void *userdata);

/* The status as of now. 0 with a status that the caller ends by pod_status_done(), or -ENOMEM. */
int pod_worker_status(PodWorker *worker, PodStatus *ret);

/* A session in a container, on a socket; -EBADF: only asks whether it could be. 0; -ENOENT, -EAGAIN
 * where it does not run, another -errno, with a sentence. The session's container is filled in. */
int pod_worker_open_session(PodWorker *worker, const char *container, const SandboxSession *session,
                            int socket_fd, Error *reterr);

/* The log directory and attempt that is the latest with a log (or the one before). -ENOENT,
 * -EAGAIN. */
int pod_worker_find_log(PodWorker *worker, const char *container, bool previous,
                        char **ret_directory, unsigned *ret_attempt, bool *ret_is_live,
                        Error *reterr);
