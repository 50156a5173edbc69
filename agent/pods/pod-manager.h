/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The door of the room: the set of wanted pods in, the lives of pods out.
 *
 * It is asked to start, edit, keep or stop single pods; a stop has a reason. A pod is known by
 * namespace and name; a new spec (another UID) under the same name is started when the old one is
 * gone. */

#include "agent/bundle/bundle.h"
#include "agent/cni/cni.h"
#include "agent/eviction/eviction-message.h"
#include "agent/image/image-store.h"
#include "agent/model/config.h"
#include "agent/model/desired-pods.h"
#include "agent/model/event.h"
#include "agent/model/node.h"
#include "agent/model/probe-sample.h"
#include "agent/model/status.h"
#include "agent/pods/container/restart-policy.h"
#include "agent/sandbox/sandbox.h"

typedef struct PodManager PodManager;
typedef struct Preflight Preflight;

/* Strings and structs are borrowed and outlive the supervisor. */
typedef struct PodManagerConfig {
        sd_event *event;
        const BundleConfig *bundle;
        const SandboxConfig *sandbox;
        const CniPaths *network;
        const StringMap *runtimes; /* by the handlers that RuntimeClasses name; or NULL */
        ImageStore *images;
        BackOffLimits back_off;
        uint64_t log_max_size;
        unsigned log_max_files;
        unsigned creating_max; /* containers that are created at the same time */
        const char *host_ip;   /* NULL: unknown */
        const NodeLabelsTaints
                *node; /* its labels; may change, see pod_manager_on_node_changed() */
        const NodeConditions *conditions; /* likewise; or NULL: it never has any */
} PodManagerConfig;

typedef struct PodManagerCallbacks {
        /* A pod's status may have changed, or the pod is gone; once a turn of the loop. */
        void (*on_pod)(const Pod *pod, bool is_new, bool is_gone, void *userdata);
        /* The log of an attempt is complete. */
        void (*on_log_ended)(const char *directory, unsigned attempt, void *userdata);
        /* Something happened to a pod that people like to know. Or NULL. */
        void (*on_event)(const PodEvent *event, void *userdata);
} PodManagerCallbacks;

int pod_manager_new(const PodManagerConfig *config, const PodManagerCallbacks *callbacks,
                    void *userdata, PodManager **ret);

/* Forgets all; shims and containers go on. */
PodManager *pod_manager_free(PodManager *manager);
DEFINE_CLEANUP(PodManager *, pod_manager_free)

/* Of each good record; 0 or -errno. */
typedef int (*restored_pod_t)(const PodSource *source, const Pod *pod, void *userdata);

/* Before the desired state is computed first: takes over the pods of an earlier agent by their
 * records. Damaged ones are set aside and named in the log. 0, or what 'each' gave where that is
 * -ENOMEM. */
int pod_manager_load_records(PodManager *manager, restored_pod_t each, void *userdata,
                             Error *reterr);

/* ---- the desired state: what diff_desired_pods() compares, and what it asks for ---- */

/* All pods that are there or about to start, until the next step. 0 or -ENOMEM. */
int pod_manager_list(const PodManager *manager, ActualPods *ret);

/* Starts the pod, or edits the one of its name: in place, by restarting containers, or by replacing
 * it when the new one is pre-flighted. One that is terminating is followed by it. The pod is
 * copied. 0 or -ENOMEM. */
int pod_manager_start_or_edit(PodManager *manager, const PodSource *source, const Pod *pod);

/* The pod that runs is as it is desired: nothing follows it, and its record names this source. 0,
 * or -errno where the record cannot be written. */
int pod_manager_keep_pod(PodManager *manager, const PodSource *source, const ObjectMeta *metadata,
                         Error *reterr);

/* What was to follow, or about to start, is no longer desired. */
void pod_manager_drop_successor(PodManager *manager, const ObjectMeta *metadata);

/* Stops the pod with its own grace period; the reason is logged and recorded as an event. */
void pod_manager_stop_pod(PodManager *manager, const ObjectMeta *metadata, const char *reason);

/* When the desired state is complete: removes, once, what no known pod owns. */
void pod_manager_remove_leftovers(PodManager *manager);

/* Ends a pod on request ('pod' is its full name), with a grace period in seconds or, where that is
 * -1, its own. If it is desired still, it starts again when it is gone. 0; -ENOENT with a sentence.
 */
int pod_manager_delete_pod(PodManager *manager, const char *namespace, const char *pod,
                           int64_t grace_seconds, const char *reason, Error *reterr);

/* A session in a container of a pod; see pod_worker_open_session(). */
int pod_manager_open_session(PodManager *manager, const char *namespace, const char *pod,
                             const char *container, const SandboxSession *session, int socket_fd,
                             Error *reterr);

/* After the sweep: ConfigMaps, Secrets and classes, found through the bundle's lookup, may be
 * others. Those pods are asked that refer to one of them: 'concerns' picks them; NULL: all. */
void pod_manager_on_objects_changed(PodManager *manager,
                                    bool (*concerns)(const Pod *pod, void *userdata),
                                    void *userdata);

/* The node has other labels or conditions: who was not let in is asked again. */
void pod_manager_on_node_changed(PodManager *manager);

/* A staging (see staging.h) of a pod that is not wished for yet, because another has to end first.
 * The pod gets what its classes give it. Pod and userdata are borrowed. */
int pod_manager_new_preflight(PodManager *manager, Pod *pod, void (*on_change)(void *userdata),
                              void *userdata, Preflight **ret);

/* Images that were missing may be there now. */
void pod_manager_on_images_changed(PodManager *manager);

/* The first pod whose "<namespace>/<name>/<uid>" is greater than 'after' (NULL: of all), with its
 * status. 1, and the caller ends the status by pod_status_done(); 0 when there is none; -ENOMEM. */
int pod_manager_next_pod(PodManager *manager, const char *after, const Pod **ret_pod,
                         PodStatus *ret_status);

/* Tells of every pod that has a life, in that order. The pods are the supervisor's, and stay until
 * its next step. 0 or -ENOMEM. */
int pod_manager_for_each_pod(PodManager *manager,
                             int (*each)(const Pod *pod, const PodStatus *status, void *userdata),
                             void *userdata);

/* The status of one pod. -ENOENT if there is none. */
int pod_manager_pod_status(PodManager *manager, const char *uid, const Pod **ret_pod,
                           PodStatus *ret_status);

/* Where a pod comes from. NULL where there is none of that UID. */
const PodSource *pod_manager_pod_source(const PodManager *manager, const char *uid);

/* The pod as v1.Pod with its source as print_pod_source() has it. The caller frees it; NULL: out of
 * memory. */
char *pod_manager_print_pod(const PodManager *manager, const Pod *pod, const PodStatus *status);

/* Where the log of a container is; see serve's find_log(). 'pod' is the full name. */
int pod_manager_find_log(PodManager *manager, const char *namespace, const char *pod,
                         const char *container, bool previous, char **ret_directory,
                         unsigned *ret_attempt, bool *ret_is_live, Error *reterr);

/* Whether a pod that is there names the image, in a container or a volume. 'reference' is normal.
 */
bool pod_manager_uses_image(const PodManager *manager, const char *reference);

/* True once all shims of earlier agents have told what they know. */
bool pod_manager_is_synced(const PodManager *manager);

typedef struct PodManagerCounts {
        unsigned pods_desired;
        unsigned pods;
        uint64_t pods_started;
        uint64_t containers_started;
        uint64_t containers_restarted;
        uint64_t containers_start_errors;
} PodManagerCounts;

/* The machine goes down: pods are stopped stage by stage, and none begins any more. 'done' is
 * called from the loop when no container runs or the time is over. 'stages' are sorted, and
 * borrowed. */
void pod_manager_shut_down(PodManager *manager, const ShutdownStage *stages, size_t n_stages,
                           void (*done)(void *userdata), void *userdata);

/* It does not go down after all: 'done' is not called any more, what was stopped starts again, and
 * what was refused begins. */
void pod_manager_cancel_shutdown(PodManager *manager);
/* The node is short of something: the pod that is to go first (pressure/rank.h) is stopped, and has
 * failed. Whether there is one, or what pods have written is being measured to find it. */
bool pod_manager_evict_pod(PodManager *manager, const ResourceShortage *shortage);

/* True from then on until nothing of it runs or is mounted any more; at most half a minute longer
 * than its grace. */
bool pod_manager_is_evicting(const PodManager *manager);

/* When the last of those was evicted (realtime) that are still out for this condition; 0: none. */
uint64_t pod_manager_last_evicted_at(const PodManager *manager, NodeCondition condition);

/* Before wishes are made: pods that were evicted for what the node does not have any more end, and
 * begin anew if they are wanted; but not those that are to run once only, nor those of an API
 * server, where others are made in their place. */
void pod_manager_readmit_evicted(PodManager *manager);

/* How many were evicted, by signal. */
const uint64_t *pod_manager_eviction_counts(const PodManager *manager);

/* There is a pod that may use up what the node has. */
bool pod_manager_has_active_pods(const PodManager *manager);

/* True once no pod is left, nor anything that is still being removed. */
bool pod_manager_is_empty(const PodManager *manager);

PodManagerCounts pod_manager_counts(const PodManager *manager);

/* What has come of all probes. */
void pod_manager_for_each_probe(const PodManager *manager, probe_sample_t each, void *userdata);
