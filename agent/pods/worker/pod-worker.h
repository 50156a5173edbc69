/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The pod worker: takes one pod from its spec to running containers, through edits, to its
 * termination. Level-triggered: pod_worker_step() compares the desired with the observed state, and
 * may be called at any time, repeatedly, or after a restart of the agent. */

#include "agent/image/image-set.h"
#include "agent/model/edit-plan.h"
#include "agent/model/probe-sample.h"
#include "agent/model/status.h"
#include "agent/pods/pod/pod-context.h"
#include "common/network-namespace.h"

#include <stdio.h>

typedef struct PodWorker PodWorker;

/* Takes ownership of the pod. 'was_recorded': an earlier agent had it, so it may have left
 * something. 'owner' is the argument of on_dirty(). */
int pod_worker_new_take(PodContext *context, Pod *pod, bool was_recorded, void *owner,
                        PodWorker **ret);

/* Frees the worker; the pod's shim and containers continue. */
PodWorker *pod_worker_free(PodWorker *worker);

/* Stops the pod, with its grace period; 'reason' is logged and recorded as an event (NULL: an
 * earlier agent did so). It cannot be undone: a pod with the same name that is desired later is
 * another instance. */
void pod_worker_terminate(PodWorker *worker, const char *reason);
bool pod_worker_is_desired(const PodWorker *worker);

/* Whether it is desired, and the current attempts of its containers are known. */
bool pod_worker_is_editable(const PodWorker *worker);

/* Whether one of its containers still runs with an older spec. */
bool pod_worker_is_outdated(const PodWorker *worker);
/* Whether a container that an edit restarts has not started with the edited spec yet. */
bool pod_worker_awaits_edit(const PodWorker *worker);

/* Whether it is being deleted, or has failed. */
bool pod_worker_is_terminating(const PodWorker *worker);

/* Whether it has succeeded or failed, permanently. */
bool pod_worker_has_terminated(PodWorker *worker);

/* Whether it has failed as a whole (see pod-failure.h). */
bool pod_worker_has_failed(const PodWorker *worker);

/* Whether one of its containers is running, being created or being stopped. */
bool pod_worker_has_processes(const PodWorker *worker);

/* Why the stopped pod cannot be removed, after several attempts; otherwise NULL. Valid until the
 * worker runs again. */
const char *pod_worker_removal_error(const PodWorker *worker);

/* Whether one of its containers has run, or the agent has tried to run one. */
bool pod_worker_has_started(const PodWorker *worker);

/* For the record: the attempts that were started with an older spec; if 'plan' is given, the text
 * as it will be after that edit. The caller frees it; NULL: out of memory. */
char *pod_worker_print_outdated(const PodWorker *worker, const EditPlan *plan);
void pod_worker_parse_outdated(PodWorker *worker, const char *text);

/* Replaces its pod by this one, which has the same UID and the same containers, and applies the
 * changes of the plan, which must not replace the pod. The record must have been written before. */
void pod_worker_apply_edit_take(PodWorker *worker, Pod *pod, const EditPlan *plan);

/* Sets the reason why the edited pod cannot replace this one yet; NULL: there is no such edit. */
void pod_worker_set_edit_error(PodWorker *worker, const char *message);

/* Like pod_worker_terminate(), with another grace period (-1: the pod's own). If it is called
 * several times, the shortest period applies. The same pod may start again as a new instance; see
 * pod_reset_config_seen(). */
void pod_worker_delete(PodWorker *worker, int64_t grace_seconds, const char *reason);

/* The machine is shutting down: its containers are stopped with at most this grace period, and none
 * of them starts before the next boot. A pod that has already terminated is not changed. */
void pod_worker_shut_down(PodWorker *worker, uint64_t grace_usec);

/* The shutdown was cancelled: the containers that it stopped start again, with their volumes, once
 * operations in progress have ended. */
void pod_worker_cancel_shutdown(PodWorker *worker);

/* Does everything that is due. */
void pod_worker_step(PodWorker *worker);

/* Containers that wait for an image check again at once. */
void pod_worker_on_images_changed(PodWorker *worker);

/* The network may be ready now: a pod that waits for it, or for a retry, starts. */
void pod_worker_on_network_changed(PodWorker *worker);

/* ConfigMaps, Secrets, classes or the pod's labels may have changed: volumes are updated, and
 * containers that wait for an object check again immediately. */
void pod_worker_on_objects_changed(PodWorker *worker);

/* Whether nothing is left of a terminated pod. */
bool pod_worker_is_removed(const PodWorker *worker);

/* False between a restart of the agent and the shim's response, or until it is known that there is
 * no shim. True for an unresponsive shim and during a cleanup. */
bool pod_worker_is_synced(const PodWorker *worker);

/* Adds the images that its containers use, regardless of the spec; all images as long as that is
 * unknown. */
void pod_worker_list_images(const PodWorker *worker, ImageSet *ret);

/* Prints sandbox, network, timers, errors and containers for `mainstay debug dump`. */
void pod_worker_dump(const PodWorker *worker, FILE *out);

/* Whether the node has admitted the pod, and it has not terminated. */
bool pod_worker_uses_resources(const PodWorker *worker);

/* Whether the pod holds its host ports; or whether it waits for one that another pod has. */
bool pod_worker_holds_ports(PodWorker *worker);
bool pod_worker_awaits_release(const PodWorker *worker);

/* Whether it was rejected because there were not enough devices. */
bool pod_worker_awaits_devices(const PodWorker *worker);
void pod_worker_on_devices_changed(PodWorker *worker);

/* A CSI driver has mounted or unmounted one of its volumes, or has failed. */
void pod_worker_on_csi_changed(PodWorker *worker);

/* Whether it waits for other pods to be ready before it starts; see awaited-pods.h. */
bool pod_worker_awaits_pods(const PodWorker *worker);

/* See pod_manager_set_external_conditions(). */
void pod_worker_set_external_conditions(PodWorker *worker, const StringMap *conditions);

const Pod *pod_worker_pod(const PodWorker *worker);

/* Records that the pod, with the same spec, now comes from another source: its volumes use the
 * objects of that source. */
void pod_worker_set_source(PodWorker *worker, ObjectSource source);

/* Reports the number of results of each kind for each of its probes. */
void pod_worker_for_each_probe(const PodWorker *worker, probe_sample_t each, void *userdata);

/* The status as of its last step, valid until the next one; pod_status_ref() keeps it alive. */
const PodStatus *pod_worker_status(const PodWorker *worker);

/* Opens a session in a container, on a socket; -EBADF: only checks whether it could be opened. 0;
 * -ENOENT; -EAGAIN if the container is not running; another -errno; with a message. Sets the
 * session's container. */
int pod_worker_open_session(PodWorker *worker, const char *name, const SandboxSession *session,
                            int socket_fd, Error *reterr);

/* Attaches the client of a socket to a container, with the same results: the client receives the
 * output from now on, and sends input if the container has an input. -ENOTSUP if the shim was
 * started by an older agent. Only the streams that the client requests are read from 'attach'. */
int pod_worker_attach(PodWorker *worker, const char *name, const SandboxAttach *attach,
                      int socket_fd, Error *reterr);

/* Checks that there is a sandbox, and that 'uid' is the pod's UID or NULL. 0; -ENOENT, -ENXIO with
 * a message. */
int pod_worker_check_instance(const PodWorker *worker, const char *uid, Error *reterr);

/* Does the same check, then requests a connection to a TCP port on the loopback address in the
 * pod's network. Returns the socket through which the connection arrives, see
 * port_connection_request(), or -errno with a message. */
int pod_worker_connect_to_port(PodWorker *worker, const char *uid, unsigned port, bool is_ipv6,
                               Error *reterr);

/* The traffic on the pod's interfaces; none if its network is the node's, or the shim is not
 * connected. 'ret' must have room for NETWORK_INTERFACES_MAX. Returns their number, or -errno.
 */
int pod_worker_network_usage(const PodWorker *worker, NetworkInterfaceUsage *ret);

/* The pod's sandbox, to query its usage; NULL: it has none. */
Sandbox *pod_worker_sandbox(const PodWorker *worker);

/* The log directory and attempt of the latest log (or of the one before). -ENOENT, -EAGAIN. */
int pod_worker_find_log(PodWorker *worker, const char *name, bool previous, char **ret_directory,
                        unsigned *ret_attempt, bool *ret_is_live, Error *reterr);

/* ---- eviction for node pressure ---- */

/* Whether it is desired, has not failed, and has a sandbox, so that it may be using the scarce
 * resource. */
bool pod_worker_is_active(const PodWorker *worker);

/* The pod as a candidate for eviction; the caller releases it with eviction_candidate_done(). 0 or
 * -errno. */
int pod_worker_eviction_candidate(const PodWorker *worker, EvictionCandidate *ret);

/* Fails the pod with reason Evicted and at most this grace period (seconds; < 0: the pod's own),
 * and returns the resulting grace period. False: it had already failed, or is not desired. */
bool pod_worker_evict(PodWorker *worker, NodeCondition condition, const char *message,
                      int64_t max_grace_seconds, uint64_t *ret_grace_usec);

/* The time (realtime) and the condition of its eviction; 0: it was not evicted. */
uint64_t pod_worker_evicted_at(const PodWorker *worker, NodeCondition *ret_condition);

/* Whether it has failed, and parts of it are still running or mounted. */
bool pod_worker_is_stopping_failed(const PodWorker *worker);

/* ---- preemption ---- */

/* Fails the pod, with its own grace period, because another pod needs its resources. */
void pod_worker_preempt(PodWorker *worker);

/* Fails the pod because a pod of higher trust needs its name, port or devices: with at most ten
 * seconds of its grace period, even if it is already being stopped. */
void pod_worker_displace(PodWorker *worker, const char *reason, const char *message);

/* Whether it was preempted or displaced, and parts of it are still running or mounted. */
bool pod_worker_is_stopping_preempted(const PodWorker *worker);
