/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* All containers of a pod: the order in which they start and stop (machine/container-order.h), and
 * the restart of all containers that a restart policy rule may request (RestartAllContainers).
 *
 * A restart of all containers has three phases: all are stopped, each is reset, and the rest of the
 * back-off passes. The pod's generation counts these restarts; each attempt's checkpoint contains
 * the generation in which it started. */

#include "agent/bundle/resize.h"
#include "agent/pods/container/pod-container.h"

typedef enum RestartAllState {
        RESTART_ALL_NONE,
        RESTART_ALL_STOPPING,
        RESTART_ALL_BACK_OFF, /* all have ended; the rest of the back-off passes */
} RestartAllState;

typedef struct PodContainers {
        const PodInstance *pod;
        const PodContainerCallbacks *callbacks;
        void *userdata;       /* for the callbacks */
        PodContainer **items; /* indexed like pod_nth_container() */
        size_t n;
        ContainerOrderEntry *order; /* facts about each container, as last observed */
        RestartAllState restart_all;
        bool restarts_stopped_only; /* RESTART_ALL_STOPPING does not restart containers that had
                                     * completed */
        unsigned generation;
        sd_event_source *restart_all_timer; /* the end of RESTART_ALL_BACK_OFF */
} PodContainers;

/* 0 or -ENOMEM; pod_containers_done() must be called in both cases. */
int pod_containers_init(PodContainers *containers, const PodInstance *pod,
                        const PodContainerCallbacks *callbacks, void *userdata);
void pod_containers_done(PodContainers *containers);

/* Ephemeral containers were appended to the pod's spec. 0; after -ENOMEM they are missing until the
 * pod has a new worker. */
int pod_containers_add_new(PodContainers *containers);

PodContainer *pod_containers_find(const PodContainers *containers, const char *name);

/* ---- order ---- */

/* Whether anything is left to run, judging by the containers alone. */
bool pod_containers_should_run(PodContainers *containers);

/* Whether the order of containers allows this one to start. */
bool pod_containers_allow_start(PodContainers *containers, const PodContainer *container);

/* Starts and stops the containers that are due. May be called at any time. */
void pod_containers_sync(PodContainers *containers, const ContainerOrderInput *input);

/* The pod has a new sandbox: init containers run again. */
void pod_containers_on_new_sandbox(PodContainers *containers);

/* ---- restart of all containers ---- */

/* Starts or continues a restart of all containers; 'is_terminating' ends it. */
void pod_containers_step_restart_all(PodContainers *containers, bool is_terminating);

/* The pod must no longer stop: restarts all containers that were stopped for this reason,
 * regardless of their policy. */
void pod_containers_restart_stopped(PodContainers *containers);

/* A restarted agent has adopted all containers: those of an older generation are reset. */
void pod_containers_adopt_generation(PodContainers *containers);

/* ---- queries ---- */

bool pod_containers_have_processes(const PodContainers *containers);
bool pod_containers_have_started(const PodContainers *containers); /* any attempt of any
                                                                    * container */
bool pod_containers_are_finished(const PodContainers *containers);

/* Whether all containers have completed or failed; *ret_finished_at (realtime) is the time at which
 * the last of them, except sidecars, did so. */
bool pod_containers_have_completed(PodContainers *containers, uint64_t *ret_finished_at);

/* The running containers that were started with the current resources; the caller frees the array.
 * NULL: out of memory. */
RunningContainer *pod_containers_list_running(const PodContainers *containers, size_t *ret_n);

/* Whether the runtime is starting one of the containers, with the resources that the spec had at
 * the time of the request. */
bool pod_containers_has_creating(const PodContainers *containers);

/* ---- edits ---- */

/* Whether one of them runs with an older spec. */
bool pod_containers_are_outdated(const PodContainers *containers);
bool pod_containers_await_edit(const PodContainers *containers);

/* For the record: "<container> <attempt> …" of the attempts that were started with an older spec;
 * if 'plan' is given, the text as it will be after that edit. The caller frees it. NULL: out of
 * memory. */
char *pod_containers_print_outdated(const PodContainers *containers, const EditPlan *plan);
void pod_containers_parse_outdated(PodContainers *containers, const char *text);
void pod_containers_restart_outdated(PodContainers *containers);
