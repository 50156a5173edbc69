/* SPDX-License-Identifier: Apache-2.0 */
/* A pod's life in the words of core/v1: statuses of containers, phase, conditions. */

#include "agent/bundle/actual-resources.h"
#include "agent/model/schema.h"
#include "agent/pods/pod-phase.h"
#include "agent/pods/pod-worker-private.h"
#include "common/cleanup.h"
#include "common/clock.h"

#include <signal.h>

static int compare_status_by_name(const void *a, const void *b) {
        const ContainerStatus *x = a, *y = b;

        return strcmp(x->name, y->name);
}

static void set_status_text(char **text, const char *value) {
        free(*text);
        *text = strdup(value);
}

/* A container that has not started yet waits for what the pod waits for. */
static void fill_waiting_message(const PodWorker *worker, const PodContainer *c,
                                 ContainerStatus *status) {
        if (!container_machine_is_waiting(c->machine) || status->state.message)
                return;
        if (worker->last_error)
                status->state.message = strdup(worker->last_error);
        else if (worker->restart_all == RESTART_ALL_BACK_OFF) {
                set_status_text(&status->state.reason, "RestartingAllContainers");
                status->state.message =
                        strdup("The container is removed because RestartAllContainers in place");
        }
}

/* Asked once an attempt: what a bundle says of it stays. */
static int fill_container_user(const PodWorker *worker, PodContainer *c, unsigned attempt,
                               ContainerUser *ret) {
        if (c->user.is_known && c->user_attempt != attempt)
                container_user_done(&c->user);
        if (!c->user.is_known && bundle_load_actual_user(worker->context->bundle, worker->pod,
                                                         c->spec->name, attempt, &c->user) < 0)
                return 0;
        c->user_attempt = attempt;
        return container_user_copy(&c->user, ret);
}

/* Groups are as the spec says, but where that could not be done, or not yet. */
static int fill_container_resources(const PodWorker *worker, const PodContainer *c,
                                    unsigned attempt, ResourceRequirements *ret) {
        const RunningContainer running = { c->spec, attempt };
        int r = schema_copy(&resource_requirements_schema, ret, &c->spec->resources);

        if (r < 0 || !container_machine_is_running(c->machine) ||
            !(worker->resize_error || pod_container_is_outdated(c)))
                return r;
        return bundle_read_actual_resources(worker->context->bundle, worker->pod, &running, ret);
}

/* What there is of an attempt that began. */
static int fill_attempt_status(const PodWorker *worker, PodContainer *c, ContainerStatus *one) {
        unsigned attempt = container_machine_attempt(c->machine);
        int r;

        if (!container_machine_has_run(c->machine, attempt) && attempt > 0)
                attempt--;
        r = fill_container_user(worker, c, attempt, &one->user);
        if (r >= 0)
                r = fill_container_resources(worker, c, attempt, &one->resources);
        one->stop_signal = c->stop_signal > 0 ? c->stop_signal : SIGTERM;
        return r;
}

static int fill_container_status(const PodWorker *worker, PodContainer *c, ContainerStatus *one) {
        ContainerRole role = container_role(&worker->pod->spec, c->spec);
        int r = container_machine_status(c->machine, worker->pod->metadata.uid, one);

        if (r < 0)
                return r;
        /* Of the attempt that the ID is of: an edit may name another. */
        one->image = strdup(c->image_name ? c->image_name : c->spec->image);
        one->image_id = strdup(strna(c->image_id));
        if (!one->image || !one->image_id)
                return -ENOMEM;
        one->started = one->started && container_probes_have_started(c);
        one->ready = one->ready && container_probes_are_ready(c);
        /* To be done is what a container of init is there for. */
        if (role == ROLE_INIT)
                one->ready = container_machine_has_succeeded(c->machine);
        fill_waiting_message(worker, c, one);
        if (one->state.kind == STATE_WAITING && !one->state.message)
                one->state.message = pod_container_pull_progress(c);
        return one->container_id ? fill_attempt_status(worker, c, one) : 0;
}

static int fill_container_statuses(const PodWorker *worker, PodStatus *status) {
        const PodSpec *spec = &worker->pod->spec;

        status->init_containers.items =
                calloc(spec->init_containers.n + 1, sizeof(ContainerStatus));
        status->containers.items = calloc(spec->containers.n + 1, sizeof(ContainerStatus));
        if (!status->init_containers.items || !status->containers.items)
                return -ENOMEM;
        if (worker->rejection_reason) /* none will ever be */
                return 0;
        for (size_t i = 0; i < worker->n_containers; i++) {
                ContainerStatusList *list = i < spec->init_containers.n ? &status->init_containers
                                                                        : &status->containers;
                int r = fill_container_status(worker, &worker->containers[i],
                                              &list->items[list->n++]);

                if (r < 0)
                        return r;
        }
        qsort(status->containers.items, status->containers.n, sizeof(ContainerStatus),
              compare_status_by_name);
        return 0;
}

/* When a condition that we tell for the first time came true: an agent that was restarted must not
 * make it look as if the pod had become ready just now. */
static uint64_t first_transition_time(const PodWorker *worker, const PodStatus *status,
                                      PodConditionType type) {
        uint64_t latest = 0;

        if (pod_condition_is_passing(type))
                return now_realtime_usec();
        if (type == CONDITION_INITIALIZED)
                for (size_t i = 0; i < status->init_containers.n; i++)
                        latest = MAX(latest,
                                     MAX(status->init_containers.items[i].state.started_at,
                                         status->init_containers.items[i].state.finished_at));
        if (type != CONDITION_READY && type != CONDITION_CONTAINERS_READY)
                return MAX(latest, worker->start_time);
        for (size_t i = 0; i < status->containers.n; i++)
                latest = MAX(latest, status->containers.items[i].state.started_at);
        return latest > 0 ? latest : worker->start_time;
}

static void set_pod_condition(PodWorker *worker, PodStatus *status, PodConditionType type,
                              bool is_true, const char *reason, const char *message) {
        PodCondition provisional = { 0 };
        /* What is told before it is known what an earlier agent left is no transition. */
        PodCondition *known = worker->needs_cleanup ? &provisional : &worker->conditions[type];

        if (known->last_transition == 0)
                known->last_transition = first_transition_time(worker, status, type);
        else if (known->is_true != is_true)
                known->last_transition = now_realtime_usec();
        known->is_true = is_true;
        status->conditions[type] = (PodCondition){
                .is_true = is_true,
                .reason = reason && !is_true ? strdup(reason) : NULL,
                .message = message && !is_true ? strdup(message) : NULL,
                .last_transition = known->last_transition,
        };
}

/* Told while they are true. */
static void set_transient_condition(PodWorker *worker, PodStatus *status, PodConditionType type,
                                    const char *reason, const char *message) {
        set_pod_condition(worker, status, type, message != NULL, NULL, NULL);
        if (!message)
                return;
        status->conditions[type].reason = strdup(reason);
        status->conditions[type].message = strdup(message);
}

static void fill_initialized_condition(PodWorker *worker, PodStatus *status) {
        cleanup_free char *incomplete = list_incomplete_containers(&worker->pod->spec, status);
        bool is_done = !incomplete || pod_was_initialized(status);

        set_pod_condition(worker, status, CONDITION_INITIALIZED, is_done,
                          "ContainersNotInitialized", incomplete);
        if (is_done && status->phase == POD_SUCCEEDED)
                set_status_text(&status->conditions[CONDITION_INITIALIZED].reason, "PodCompleted");
}

/* Ready is what its containers are, but where a gate of its own is closed. */
static void fill_ready_condition(PodWorker *worker, PodStatus *status, const char *reason,
                                 const char *message) {
        bool is_ready = status->conditions[CONDITION_CONTAINERS_READY].is_true;
        cleanup_free char *unready_gates =
                is_ready ? list_unready_gates(&worker->pod->spec, status) : NULL;

        if (unready_gates)
                set_pod_condition(worker, status, CONDITION_READY, false, "ReadinessGatesNotReady",
                                  unready_gates);
        else
                set_pod_condition(worker, status, CONDITION_READY, is_ready, reason, message);
}

static void fill_pod_conditions(PodWorker *worker, PodStatus *status) {
        cleanup_free char *unready = list_unready_containers(&worker->pod->spec, status);
        /* A shim that was found has been set up before. */
        bool has_sandbox = worker->state == WORKER_READY ||
                           (worker->state == WORKER_SYNCING && worker->needs_cleanup);
        bool ready = !unready && status->phase == POD_RUNNING;
        bool all_restart = worker->restart_all != RESTART_ALL_NONE;
        const char *reason = "ContainersNotReady", *message = unready, *ended = NULL;

        if (status->phase == POD_SUCCEEDED || status->phase == POD_FAILED) {
                reason = ended = status->phase == POD_SUCCEEDED ? "PodCompleted" : "PodFailed";
                message = NULL;
        }
        if (worker->rejection_reason) /* and of its containers nothing is told */
                reason = "UnknownContainerStatuses";
        set_pod_condition(worker, status, CONDITION_READY_TO_START_CONTAINERS, has_sandbox, NULL,
                          worker->last_error);
        fill_initialized_condition(worker, status);
        set_pod_condition(worker, status, CONDITION_CONTAINERS_READY, ready, reason, message);
        set_pod_condition(worker, status, CONDITION_SCHEDULED, true, NULL, NULL);
        set_transient_condition(worker, status, CONDITION_RESIZE_IN_PROGRESS, "Error",
                                worker->resize_error);
        set_transient_condition(worker, status, CONDITION_EDIT_PENDING, "SuccessorNotReady",
                                worker->edit_error);
        set_transient_condition(worker, status, CONDITION_DISRUPTION_TARGET, "TerminationByKubelet",
                                pod_worker_is_evicted(worker) ? worker->failure.message : NULL);
        set_pod_condition(worker, status, CONDITION_ALL_CONTAINERS_RESTARTING, all_restart, ended,
                          NULL);
        if (all_restart)
                set_status_text(&status->conditions[CONDITION_ALL_CONTAINERS_RESTARTING].reason,
                                "RestartAllContainersStarted");
        fill_ready_condition(worker, status, reason, message); /* gates ask for any of them */
}

static void fill_pod_addresses(const PodWorker *worker, PodStatus *status) {
        const char *first = network_attachment_address(worker->attachment, 0);
        const char *second = network_attachment_address(worker->attachment, 1);

        status->pod_ip = first ? strdup(first) : NULL;
        status->other_pod_ip = second ? strdup(second) : NULL;
}

static void fill_pod_phase(const PodWorker *worker, PodStatus *status) {
        if (worker->rejection_reason) {
                status->phase = POD_FAILED;
                status->reason = strdup(worker->rejection_reason);
                status->message = strdup(strna(worker->rejection_message));
                return;
        }
        if (pod_worker_has_failed(worker)) {
                status->phase = POD_FAILED;
                status->reason = strdup(worker->failure.reason);
                status->message = strdup(worker->failure.message);
                return;
        }
        /* A file's pod is never over, and when it ends it is gone. */
        status->phase =
                pod_phase(&worker->pod->spec, status, worker->restart_all != RESTART_ALL_NONE,
                          !worker->is_desired && pod_is_of_api(worker->pod));
}

int pod_worker_status(PodWorker *worker, PodStatus *ret) {
        const char *host_ip = worker->context->host_ip;
        PodStatus status = {
                .is_syncing = !pod_worker_is_synced(worker),
                .start_time = worker->start_time,
                .deletion_time = worker->deletion_time,
                .qos_class = pod_qos_class(&worker->pod->spec),
                .may_restart_all = pod_may_restart_all_containers(&worker->pod->spec),
        };
        int r = fill_container_statuses(worker, &status);

        if (r < 0) {
                pod_status_done(&status);
                return r;
        }
        fill_pod_phase(worker, &status);
        status.host_ip = host_ip ? strdup(host_ip) : NULL;
        /* In the host's network the pod has the node's address, from the moment its sandbox is
         * there. */
        if (worker->pod->spec.host_network && worker->state == WORKER_READY && host_ip)
                status.pod_ip = strdup(host_ip);
        else if (worker->attachment)
                fill_pod_addresses(worker, &status);
        fill_pod_conditions(worker, &status);
        *ret = status;
        return 0;
}
