/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The door of the room: the set of wanted pods in, the lives of pods out.
 *
 * Wishes are mark and sweep: supervisor_begin(), supervisor_want() for each pod,
 * supervisor_sweep(); who was not named is stopped. A pod is known by namespace and name; a new
 * spec (another UID) under the same name is started when the old one is gone. */

#include "agent/bundle/bundle.h"
#include "agent/image/image.h"
#include "agent/model/config.h"
#include "agent/model/event.h"
#include "agent/model/node.h"
#include "agent/model/probe-sample.h"
#include "agent/model/status.h"
#include "agent/network/network.h"
#include "agent/pressure/sentence.h"
#include "agent/sandbox/sandbox.h"
#include "agent/supervise/decide.h"

typedef struct Supervisor Supervisor;
typedef struct Staging Staging;

/* Strings and structs are borrowed and outlive the supervisor. */
typedef struct SupervisorConfig {
        sd_event *event;
        const BundleConfig *bundle;
        const SandboxConfig *sandbox;
        const NetworkPlaces *network;
        const StringMap *runtimes; /* by the handlers that RuntimeClasses name; or NULL */
        ImageStore *images;
        BackOff back_off;
        uint64_t log_max_size;
        unsigned log_max_files;
        unsigned creating_max; /* containers that are created at the same time */
        const char *host_ip;   /* NULL: unknown */
        const NodeFacts *node; /* its labels; may change, see supervisor_node_changed() */
        const NodeConditions *conditions; /* likewise; or NULL: it never has any */
} SupervisorConfig;

typedef struct SupervisorCallbacks {
        /* A pod's status may have changed, or the pod is gone; once a turn of the loop. */
        void (*on_pod)(const Pod *pod, bool is_new, bool is_gone, void *userdata);
        /* The log of an attempt is complete. */
        void (*on_log_ended)(const char *directory, unsigned attempt, void *userdata);
        /* Something happened to a pod that people like to know. Or NULL. */
        void (*on_event)(const PodEvent *event, void *userdata);
} SupervisorCallbacks;

int supervisor_new(const SupervisorConfig *config, const SupervisorCallbacks *callbacks,
                   void *userdata, Supervisor **ret);

/* Forgets all; shims and containers go on. */
Supervisor *supervisor_free(Supervisor *supervisor);
DEFINE_CLEANUP(Supervisor *, supervisor_free)

/* Before the first wishes: takes up what an earlier agent left, by its records. 'each' is told the
 * file and the pod of every good record. Damaged ones are set aside and named in the log. */
int supervisor_load(Supervisor *supervisor,
                    void (*each)(const char *file, const Pod *pod, void *userdata), Error *reterr);

void supervisor_begin(Supervisor *supervisor);

/* 'file' is where the pod comes from. The pod is copied. 0, or -errno with the sentence; then
 * whatever runs under the name runs on. */
int supervisor_want(Supervisor *supervisor, const char *file, const Pod *wish, Error *reterr);
void supervisor_sweep(Supervisor *supervisor);

/* Somebody of the present wishes has the name already. */
bool supervisor_is_named(const Supervisor *supervisor, const char *namespace, const char *pod);

/* A person ends a pod ('pod' is its full name), with a grace period in seconds or, where that is
 * -1, its own. If it is wanted still, supervisor_want() must say so once more: then it begins anew
 * when this life has ended. 0; -ENOENT with a sentence. */
int supervisor_delete(Supervisor *supervisor, const char *namespace, const char *pod,
                      int64_t grace_seconds, Error *reterr);

/* A session in a container of a pod; see pod_life_session(). */
int supervisor_session(Supervisor *supervisor, const char *namespace, const char *pod,
                       const char *container, const SandboxSession *session, int socket_fd,
                       Error *reterr);

/* After the sweep: ConfigMaps, Secrets and classes, found through the bundle's lookup, may be
 * others. Those pods are asked that refer to one of them: 'concerns' picks them; NULL: all. */
void supervisor_objects_changed(Supervisor *supervisor,
                                bool (*concerns)(const Pod *pod, void *userdata), void *userdata);

/* The node has other labels or conditions: who was not let in is asked again. */
void supervisor_node_changed(Supervisor *supervisor);

/* A staging (see staging.h) of a pod that is not wished for yet, because another has to end first.
 * The pod gets what its classes give it. Pod and userdata are borrowed. */
int supervisor_stage(Supervisor *supervisor, Pod *pod, void (*on_news)(void *userdata),
                     void *userdata, Staging **ret);

/* Images that were missing may be there now. */
void supervisor_images_changed(Supervisor *supervisor);

/* The first pod whose "<namespace>/<name>/<uid>" is greater than 'after' (NULL: of all), with its
 * status. 1, and the caller ends the status by pod_status_done(); 0 when there is none; -ENOMEM. */
int supervisor_next(Supervisor *supervisor, const char *after, const Pod **ret_pod,
                    PodStatus *ret_status);

/* Tells of every pod that has a life, in that order. The pods are the supervisor's, and stay until
 * its next step. 0 or -ENOMEM. */
int supervisor_each(Supervisor *supervisor,
                    int (*each)(const Pod *pod, const PodStatus *status, void *userdata),
                    void *userdata);

/* The status of one pod. -ENOENT if there is none. */
int supervisor_status(Supervisor *supervisor, const char *uid, const Pod **ret_pod,
                      PodStatus *ret_status);

/* Where a pod comes from: the 'file' of its wish. NULL where there is none of that UID. */
const char *supervisor_origin(const Supervisor *supervisor, const char *uid);

/* Where the log of a container is; see serve's find_log(). 'pod' is the full name. */
int supervisor_find_log(Supervisor *supervisor, const char *namespace, const char *pod,
                        const char *container, bool previous, char **ret_directory,
                        unsigned *ret_attempt, bool *ret_is_live, Error *reterr);

/* True once all shims of earlier agents have told what they know. */
bool supervisor_is_synced(const Supervisor *supervisor);

typedef struct SupervisorCounts {
        unsigned pods_wanted;
        unsigned pods;
        uint64_t pods_started;
        uint64_t containers_started;
        uint64_t containers_restarted;
        uint64_t containers_start_errors;
} SupervisorCounts;

/* The machine goes down: pods are stopped stage by stage, and none begins any more. 'done' is
 * called from the loop when no container runs or the time is over. 'stages' are sorted, and
 * borrowed. */
void supervisor_shut_down(Supervisor *supervisor, const ShutdownStage *stages, size_t n_stages,
                          void (*done)(void *userdata), void *userdata);

/* It does not go down after all: 'done' is not called any more, what was stopped starts again, and
 * what was refused begins. */
void supervisor_go_on(Supervisor *supervisor);
/* The node is short of something: the pod that is to go first (pressure/rank.h) is stopped, and has
 * failed. Whether there is one, or what pods have written is being measured to find it. */
bool supervisor_evict(Supervisor *supervisor, const Shortage *shortage);

/* True from then on until nothing of it runs or is mounted any more; at most half a minute longer
 * than its grace. */
bool supervisor_is_evicting(const Supervisor *supervisor);

/* When the last of those was evicted (realtime) that are still out for this condition; 0: none. */
uint64_t supervisor_evicted_at(const Supervisor *supervisor, NodeCondition condition);

/* Before wishes are made: pods that were evicted for what the node does not have any more end, and
 * begin anew if they are wanted; but not those that are to run once only, nor those of an API
 * server, where others are made in their place. */
void supervisor_let_return(Supervisor *supervisor);

/* How many were evicted, by signal. */
const uint64_t *supervisor_eviction_counts(const Supervisor *supervisor);

/* There is a pod that may use up what the node has. */
bool supervisor_is_active(const Supervisor *supervisor);

/* True once no pod is left, nor anything that is still being removed. */
bool supervisor_is_empty(const Supervisor *supervisor);

SupervisorCounts supervisor_counts(const Supervisor *supervisor);

/* What has come of all probes. */
void supervisor_each_probe(const Supervisor *supervisor, probe_sample_t each, void *userdata);
