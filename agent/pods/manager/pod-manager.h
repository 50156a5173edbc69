/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The interface of the module: receives the pods to start, edit, keep or stop, and provides running
 * pods and their statuses. Each stop has a reason. A pod is identified by namespace and name; if a
 * new spec (with another UID) has the same name, it is started when the old pod is gone. */

#include "agent/bundle/bundle.h"
#include "agent/cni/cni.h"
#include "agent/csi/csi-manager.h"
#include "agent/devices/device-manager.h"
#include "agent/image/image-store.h"
#include "agent/model/config.h"
#include "agent/model/desired-pods.h"
#include "agent/model/event.h"
#include "agent/model/eviction.h"
#include "agent/model/node-status.h"
#include "agent/model/node-usage.h"
#include "agent/model/node.h"
#include "agent/model/probe-sample.h"
#include "agent/model/status.h"
#include "agent/pods/machine/restart-policy.h"
#include "agent/pods/machine/start-limiter.h"
#include "agent/sandbox/sandbox.h"
#include "common/network-namespace.h"

#include <stdio.h>

typedef struct PodManager PodManager;
typedef struct Preflight Preflight;

/* Strings and structs are borrowed and outlive the manager. */
typedef struct PodManagerConfig {
        sd_event *event;
        const BundleConfig *bundle;
        const SandboxConfig *sandbox;
        const CniSettings *network;
        const StringMap *runtimes; /* by the handler names of RuntimeClasses; or NULL */
        ImageStore *images;
        BackOffLimits back_off;
        uint64_t log_max_size;
        unsigned log_max_files;
        StartLimit start_limit;  /* containers that are created at the same time */
        const char *host_ips[2]; /* at most one per family; NULL: none or unknown */
        const NodeLabelsTaints
                *node; /* with its labels; may change, see pod_manager_on_node_changed() */
        const NodeConditions *conditions; /* likewise; or NULL: there are none */
        const NodeResources *allocatable; /* likewise; or NULL: pods of an API server always fit */
        DeviceManager *devices;           /* for extended resources; NULL: there are none */
        CsiManager *csi;                  /* NULL while pods are drained */
} PodManagerConfig;

typedef struct PodManagerCallbacks {
        /* A pod's status may have changed, or the pod is gone. Called at most once per turn of the
         * loop for each pod. */
        void (*on_pod)(const Pod *pod, bool is_new, bool is_gone, void *userdata);
        /* The log of an attempt is complete. */
        void (*on_log_ended)(const char *directory, unsigned attempt, void *userdata);
        /* An event of a pod. May be NULL. */
        void (*on_event)(const PodEvent *event, void *userdata);
} PodManagerCallbacks;

int pod_manager_new(const PodManagerConfig *config, const PodManagerCallbacks *callbacks,
                    void *userdata, PodManager **ret);

/* Frees the manager; shims and containers keep running. */
PodManager *pod_manager_free(PodManager *manager);

/* Passes on on_pod_changed() of the device manager: the devices of one pod have changed or, if
 * 'uid' is NULL, pods that were rejected may be admitted now. */
void pod_manager_on_devices_changed(PodManager *manager, const char *uid);

/* The same for the CSI manager. */
void pod_manager_on_csi_changed(PodManager *manager, const char *uid);
DEFINE_CLEANUP(PodManager *, pod_manager_free)

/* Called for each valid record; 0 or -errno. */
typedef int (*restored_pod_t)(const PodSource *source, const Pod *pod, void *userdata);

/* To be called before the desired state is computed for the first time: takes over the pods of an
 * earlier agent by their records. Damaged records are set aside, unreadable ones are not changed;
 * both are logged, and so is a directory that cannot be listed. 0; or -errno if 'must_be_all' is
 * set and a directory cannot be listed. */
int pod_manager_load_records(PodManager *manager, restored_pod_t each, void *userdata,
                             bool must_be_all, Error *reterr);

/* ---- the desired state: the input of diff_desired_pods(), and its requests ---- */

/* All pods that exist or are about to start, valid until the next step. 0 or -ENOMEM. */
int pod_manager_list(const PodManager *manager, ActualPods *ret);

/* Starts the pod, or edits the one with its name: in place, by restarting containers, or by
 * replacing it once the preflight of the new one has passed. If the old pod is terminating, the new
 * one follows it. The pod is copied. 0 or -ENOMEM. */
int pod_manager_start_or_edit(PodManager *manager, const PodSource *source, const Pod *pod);

/* The running pod matches the desired one: ensures that it has no successor, and that its record
 * names this source. 0, or -errno if the record cannot be written. */
int pod_manager_keep_pod(PodManager *manager, const PodSource *source, const ObjectMeta *metadata,
                         Error *reterr);

/* The successor of the pod, or the pod itself if it has not started yet, is no longer desired. */
void pod_manager_drop_successor(PodManager *manager, const ObjectMeta *metadata);

/* Stops the pod with its own grace period; the reason is logged and recorded as an event. */
void pod_manager_stop_pod(PodManager *manager, const ObjectMeta *metadata, const char *reason);

/* To be called when the desired state is complete: removes, once, everything that belongs to no
 * known pod. */
void pod_manager_remove_leftovers(PodManager *manager);

/* Ends a pod on request ('pod' is its full name), with a grace period in seconds or, if it is -1,
 * its own. If the pod is still desired, it starts again after it has ended. 0; -ENOENT with a
 * message.
 */
int pod_manager_delete_pod(PodManager *manager, const char *namespace, const char *pod,
                           int64_t grace_seconds, const char *reason, Error *reterr);

/* Whether this instance of the pod runs; see pod_worker_check_instance(). */
int pod_manager_check_pod(PodManager *manager, const char *namespace, const char *pod,
                          const char *uid, Error *reterr);

/* Connects to a port of a pod; see pod_worker_connect_to_port(). */
int pod_manager_connect_to_port(PodManager *manager, const char *namespace, const char *pod,
                                const char *uid, unsigned port, bool is_ipv6, Error *reterr);

/* The traffic on the interfaces of the pod with that UID; see pod_worker_network_usage(). 0: none,
 * or there is no such pod. */
int pod_manager_network_usage(const PodManager *manager, const char *uid,
                              NetworkInterfaceUsage *ret);

/* Requests that all shims count the open descriptors of their containers; see
 * sandbox_request_usage(). */
void pod_manager_request_usage(PodManager *manager);

/* The last response about a container of that pod; see sandbox_container_usage(). */
const ProcessUsage *pod_manager_container_usage(const PodManager *manager, const char *uid,
                                                const char *id, uint64_t *ret_taken_at);

/* Opens a session in a container of a pod; see pod_worker_open_session(). */
int pod_manager_open_session(PodManager *manager, const char *namespace, const char *pod,
                             const char *container, const SandboxSession *session, int socket_fd,
                             Error *reterr);

/* Attaches a client to a container; see pod_worker_attach(). */
int pod_manager_attach(PodManager *manager, const char *namespace, const char *pod,
                       const char *container, const SandboxAttach *attach, int socket_fd,
                       Error *reterr);

/* Adds an ephemeral container, a v1.EphemeralContainer as JSON, to a running pod that does not come
 * from an API server. It starts at once, is never restarted, and exists as long as this instance of
 * the pod. Without a name, one is generated. 0 with the name, which the caller frees; -ENOENT;
 * -EAGAIN if the pod is not running; -EINVAL; another -errno; with a message. */
int pod_manager_add_ephemeral_container(PodManager *manager, const char *namespace, const char *pod,
                                        const char *json, char **ret_name, Error *reterr);

/* ConfigMaps, Secrets or classes that the bundle's lookup finds may have changed. 'concerns'
 * selects the pods that refer to one of them; NULL: all pods. To be called after the desired state
 * has been applied. */
void pod_manager_on_objects_changed(PodManager *manager,
                                    bool (*concerns)(const Pod *pod, void *userdata),
                                    void *userdata);

/* The node's labels or conditions have changed: rejected pods may be admitted now. */
void pod_manager_on_node_changed(PodManager *manager);

/* 'not_ready' of the network settings has changed: pods that wait for the network may start. */
void pod_manager_on_network_changed(PodManager *manager);

/* A preflight (see successor-preflight.h) of a pod that is not desired yet, because another pod has
 * to end first. The classes of the pod must be resolved. Pod and userdata are borrowed. */
int pod_manager_new_preflight(PodManager *manager, Pod *pod, void (*on_change)(void *userdata),
                              void *userdata, Preflight **ret);

/* Images that were missing may be present now. */
void pod_manager_on_images_changed(PodManager *manager);

/* A status describes the end of the pod's last step, and is valid until the next one: queries do
 * not change it, and pod_status_ref() keeps it alive.
 *
 * The first pod whose "<namespace>/<name>/<uid>" is greater than 'after' (NULL: the first of all),
 * with its status. False: there is none. */
bool pod_manager_next_pod(const PodManager *manager, const char *after, const Pod **ret_pod,
                          const PodStatus **ret_status);

/* Calls 'each' with every pod that has a worker, in that order, until it returns less than 0. The
 * pods are borrowed until the next step. 0, or the result of 'each'. */
int pod_manager_for_each_pod(const PodManager *manager,
                             int (*each)(const Pod *pod, const PodStatus *status, void *userdata),
                             void *userdata);

/* Sets the conditions that the pod with that UID has at the API server, which its readiness gates
 * may name. They are copied if they have changed; does nothing if there is no such pod. */
void pod_manager_set_external_conditions(PodManager *manager, const char *uid,
                                         const StringMap *conditions);

/* The pod with that UID, valid until the next step; NULL: none. */
const Pod *pod_manager_find_pod(const PodManager *manager, const char *uid);
/* Whether a container that an edit restarts has not started with the edited spec yet. */
bool pod_manager_awaits_edit(const PodManager *manager, const char *uid);

/* The status of one pod. NULL: there is none with that UID. */
const PodStatus *pod_manager_pod_status(const PodManager *manager, const char *uid);

/* The source of a pod. NULL if there is none with that UID. */
const PodSource *pod_manager_pod_source(const PodManager *manager, const char *uid);

/* The pod as v1.Pod, with its source as print_pod_source() prints it. The caller frees it; NULL:
 * out of memory. */
char *pod_manager_print_pod(const PodManager *manager, const Pod *pod, const PodStatus *status);

/* Finds the log of a container (kubectl logs). 'pod' is the full name. */
int pod_manager_find_log(PodManager *manager, const char *namespace, const char *pod,
                         const char *container, bool previous, char **ret_directory,
                         unsigned *ret_attempt, bool *ret_is_live, Error *reterr);

/* Adds the images that existing pods name, and those that they use. */
void pod_manager_list_images(const PodManager *manager, ImageSet *ret);

/* True once all shims of an earlier agent have replayed their state. */
bool pod_manager_is_synced(const PodManager *manager);

typedef struct PodManagerCounts {
        unsigned pods_desired;
        unsigned pods;
        uint64_t pods_started, user_pods_started;
        uint64_t containers_started;
        uint64_t containers_restarted;
        uint64_t containers_start_errors;
        uint64_t preemptions[N_NODE_AMOUNTS]; /* by the first resource that was missing */
} PodManagerCounts;

/* Graceful node shutdown: pods are stopped stage by stage, and none starts. 'done' is called from
 * the loop when no container is running or the time is over. 'stages' are sorted and borrowed. */
void pod_manager_shut_down(PodManager *manager, const ShutdownStage *stages, size_t n_stages,
                           void (*done)(void *userdata), void *userdata);

/* Whether a node shutdown is in progress. */
bool pod_manager_is_shutting_down(const PodManager *manager);

/* The shutdown was cancelled: 'done' is not called, stopped pods start again, and rejected ones
 * start. */
void pod_manager_cancel_shutdown(PodManager *manager);

/* ---- node-pressure eviction ---- */

/* The pods that may be evicted, in an array that the caller frees, its elements with
 * eviction_candidate_done(). 0 or -ENOMEM. */
int pod_manager_list_eviction_candidates(PodManager *manager, EvictionCandidate **ret,
                                         size_t *ret_n);

/* Fails a pod; see pod_worker_evict(). */
bool pod_manager_evict_pod(PodManager *manager, const char *uid, NodeCondition condition,
                           const char *message, int64_t max_grace_seconds,
                           uint64_t *ret_grace_usec);

/* Whether parts of any failed pod are still running or mounted. */
bool pod_manager_is_stopping_failed(const PodManager *manager, const char *uid);

/* The time (realtime) of the latest eviction among the pods that are still failed because of this
 * condition; 0: none. */
uint64_t pod_manager_last_evicted_at(const PodManager *manager, NodeCondition condition);

/* Deletes pods that were evicted for a condition that the node no longer has; they start again if
 * they are desired. Pods with restart policy Never stay, and so do those of an API server, whose
 * controllers replace them. To be called before the desired pods are computed. */
void pod_manager_readmit_evicted(PodManager *manager);

/* Whether there is a pod that may be using the scarce resource. */
bool pod_manager_has_active_pods(const PodManager *manager);

/* Prevents further starts of pods, because all are about to be stopped, one after another. */
void pod_manager_set_draining(PodManager *manager);

/* The progress of draining: 1 once no pod is left, and no cleanup is in progress; 0 before; -EBUSY
 * if all remaining pods have stopped but cannot be removed, each of which is logged. */
int pod_manager_drained(const PodManager *manager);

PodManagerCounts pod_manager_counts(const PodManager *manager);

/* Prints all pod workers and the start limiter for `mainstay debug dump`. */
void pod_manager_dump(const PodManager *manager, FILE *out);

/* Reports the number of results of each kind for each probe. */
void pod_manager_for_each_probe(const PodManager *manager, probe_sample_t each, void *userdata);
