/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* One container of a pod worker: its state machine (machine/), driven by bundles, the shim, images,
 * probes, hooks and timers. Accesses the state of the pod only through callbacks. */

#include "agent/model/edit-plan.h"
#include "agent/model/probe-sample.h"
#include "agent/pods/container/container-instance.h"
#include "agent/pods/container/terminated-containers.h"
#include "agent/pods/machine/container-order.h"

typedef struct PodContainer PodContainer;

/* The requests of a container to its pod worker. */
typedef struct PodContainerCallbacks {
        /* Whether the sandbox is ready, and the order of containers allows a start. */
        bool (*may_start)(const PodContainer *container, void *userdata);
        /* Whether all containers are being stopped, so that none restarts. */
        bool (*must_stop)(void *userdata);
        /* Whether all containers are being stopped to be restarted: preStop hooks are skipped. */
        bool (*is_restarting_all)(void *userdata);
        unsigned (*generation)(void *userdata);           /* number of restarts of all containers so
                                                           * far */
        uint64_t (*remaining_grace_usec)(void *userdata); /* the rest of the pod's grace period */
        void (*restore_slices)(void *userdata);           /* creates systemd slices again that were
                                                           * stopped */
        void (*abandon_sandbox)(const char *why, void *userdata);
        /* The container of the pod with that name, or NULL. */
        const ContainerInstance *(*find_container)(const char *name, void *userdata);
} PodContainerCallbacks;

/* 'pod' and 'spec' are borrowed. 0 or -ENOMEM. */
int pod_container_new(const PodInstance *pod, const Container *spec,
                      const PodContainerCallbacks *callbacks, void *userdata, PodContainer **ret);

/* Frees the container; its processes continue. */
PodContainer *pod_container_free(PodContainer *container);

const ContainerInstance *pod_container_instance(const PodContainer *container);
ContainerMachine *pod_container_machine(const PodContainer *container);

/* The facts about the container on which the order of containers depends. */
ContainerOrderEntry pod_container_order_entry(const PodContainer *container);

/* Starts and stops probes. May be called at any time. */
void pod_container_step(PodContainer *container);

/* Lets the machine wait to be started again in the same sandbox; does nothing for an ephemeral
 * container that has run. */
void pod_container_reset(PodContainer *container);

/* The pod has a new sandbox, in which the container has not run. */
void pod_container_on_new_sandbox(PodContainer *container);

/* ---- the shim ---- */

/* An event about one of its attempts. */
void pod_container_on_event(PodContainer *container, const ShimEvent *event);

/* The shim has replayed its complete state. 'is_found': to a restarted agent; otherwise after a
 * lost connection. */
void pod_container_on_synced(PodContainer *container, bool is_found,
                             const TerminatedContainers *terminated);
bool pod_container_has_replayed(const PodContainer *container);

/* The shim is gone. May be called repeatedly. */
void pod_container_on_sandbox_lost(PodContainer *container, uint64_t now);

/* No shim has the container, but it has logs: it ran, and its end was not observed unless it is in
 * 'terminated'. */
void pod_container_recover(PodContainer *container, const TerminatedContainers *terminated);

/* Returns how the container ended, for the checkpoint; reason and messages are borrowed. False: it
 * has not ended. */
bool pod_container_describe_end(const PodContainer *container, TerminatedContainer *ret);

/* If the current attempt started before a restart of all containers, resets the container once that
 * attempt has ended. */
void pod_container_reset_old_generation(PodContainer *container, unsigned generation);
unsigned pod_container_generation(const PodContainer *container);

/* The container is being stopped, and the pod's grace period is now shorter. */
void pod_container_shorten_grace(PodContainer *container);

/* Objects to which the pod refers have changed. */
void pod_container_on_objects_changed(PodContainer *container, bool sandbox_is_ready);

/* ---- edits ---- */

/* The pod was edited: 'spec' is the container's new spec. Calls for the effects of the edit plan
 * follow. */
void pod_container_set_spec(PodContainer *container, const Container *spec);
void pod_container_apply_edit(PodContainer *container, const EditPlan *plan);

/* Whether the current attempt was started, with the current spec. */
bool pod_container_has_current_attempt(const PodContainer *container);

/* Whether the running attempt was started with an older spec. */
bool pod_container_is_outdated(const PodContainer *container);
/* The same, but also true if no attempt with the current spec has started yet. */
bool pod_container_awaits_edit(const PodContainer *container);
void pod_container_set_outdated(PodContainer *container, unsigned attempt);

/* ---- status ---- */

typedef struct PodContainerStatusInput {
        const char *awaited_pods;   /* the pods after which this pod starts, for a message; or
                                     * NULL */
        const char *last_error;     /* why the sandbox is not ready; or NULL */
        bool waits_for_restart_all; /* all containers wait for the back-off before their restart */
        bool has_resize_error;      /* the cgroups do not match the spec */
} PodContainerStatusInput;

/* Fills in 'ret', which must be zeroed. 0 or -ENOMEM. */
int pod_container_status(PodContainer *container, const PodContainerStatusInput *input,
                         ContainerStatus *ret);

/* Adds the images that the container's process uses. */
void pod_container_list_images(const PodContainer *container, ImageSet *ret);

/* Prints the container's state, timers and probes for `mainstay debug dump`. The second function
 * prints one line about the container, as an entry of the start limiter's queue, whose userdata is
 * the container. */
void pod_container_dump(const PodContainer *container, FILE *out);
void pod_container_dump_queued(const void *container, FILE *out);

void pod_container_for_each_probe(const PodContainer *container, probe_sample_t each,
                                  void *userdata);
