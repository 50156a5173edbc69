/* SPDX-License-Identifier: Apache-2.0 */
/* A pod's life in the words of core/v1: statuses of containers, phase, conditions. */

#include "agent/bundle/enacted.h"
#include "agent/model/schema.h"
#include "agent/supervise/phase.h"
#include "agent/supervise/pod-internal.h"
#include "common/cleanup.h"
#include "common/clock.h"

#include <signal.h>

static int compare_by_name(const void *a, const void *b) {
        const ContainerStatus *x = a, *y = b;

        return strcmp(x->name, y->name);
}

static void set_text(char **text, const char *value) {
        free(*text);
        *text = strdup(value);
}

/* A container that has not started yet waits for what the pod waits for. */
static void explain_waiting(const PodLife *life, const PodContainer *c, ContainerStatus *status) {
        if (!container_is_waiting(c->life) || status->state.message)
                return;
        if (life->trouble)
                status->state.message = strdup(life->trouble);
        else if (life->all_restart == ALL_RESTART_HOLDING) {
                set_text(&status->state.reason, "RestartingAllContainers");
                status->state.message =
                        strdup("The container is removed because RestartAllContainers in place");
        }
}

/* Asked once an attempt: what a bundle says of it stays. */
static int fill_user(const PodLife *life, PodContainer *c, unsigned attempt, ContainerUser *ret) {
        if (c->user.is_known && c->user_attempt != attempt)
                container_user_done(&c->user);
        if (!c->user.is_known && bundle_load_user(life->context->bundle, life->pod, c->spec->name,
                                                  attempt, &c->user) < 0)
                return 0;
        c->user_attempt = attempt;
        return container_user_copy(&c->user, ret);
}

/* Groups are as the spec says, but where that could not be done, or not yet. */
static int fill_resources(const PodLife *life, const PodContainer *c, unsigned attempt,
                          ResourceRequirements *ret) {
        const RunningContainer running = { c->spec, attempt };
        int r = schema_copy(&resource_requirements_schema, ret, &c->spec->resources);

        if (r < 0 || !container_is_running(c->life) ||
            !(life->resize_trouble || pod_container_is_outdated(c)))
                return r;
        return bundle_read_resources(life->context->bundle, life->pod, &running, ret);
}

/* What there is of an attempt that began. */
static int fill_begun(const PodLife *life, PodContainer *c, ContainerStatus *one) {
        unsigned attempt = container_attempt(c->life);
        int r;

        if (!container_has_run(c->life, attempt) && attempt > 0)
                attempt--;
        r = fill_user(life, c, attempt, &one->user);
        if (r >= 0)
                r = fill_resources(life, c, attempt, &one->resources);
        one->stop_signal = c->stop_signal > 0 ? c->stop_signal : SIGTERM;
        return r;
}

static int fill_container(const PodLife *life, PodContainer *c, ContainerStatus *one) {
        ContainerRole role = container_role(&life->pod->spec, c->spec);
        int r = container_status(c->life, life->pod->metadata.uid, one);

        if (r < 0)
                return r;
        /* Of the attempt that the ID is of: an edit may name another. */
        one->image = strdup(c->image_name ? c->image_name : c->spec->image);
        one->image_id = strdup(strna(c->image_id));
        if (!one->image || !one->image_id)
                return -ENOMEM;
        one->started = one->started && probers_have_started(c);
        one->ready = one->ready && probers_are_ready(c);
        /* To be done is what a container of init is there for. */
        if (role == ROLE_INIT)
                one->ready = container_has_succeeded(c->life);
        explain_waiting(life, c, one);
        if (one->state.kind == STATE_WAITING && !one->state.message)
                one->state.message = pod_container_pull_progress(c);
        return one->container_id ? fill_begun(life, c, one) : 0;
}

static int fill_containers(const PodLife *life, PodStatus *status) {
        const PodSpec *spec = &life->pod->spec;

        status->init_containers.items =
                calloc(spec->init_containers.n + 1, sizeof(ContainerStatus));
        status->containers.items = calloc(spec->containers.n + 1, sizeof(ContainerStatus));
        if (!status->init_containers.items || !status->containers.items)
                return -ENOMEM;
        if (life->rejection) /* none will ever be */
                return 0;
        for (size_t i = 0; i < life->n_containers; i++) {
                ContainerStatusList *list = i < spec->init_containers.n ? &status->init_containers
                                                                        : &status->containers;
                int r = fill_container(life, &life->containers[i], &list->items[list->n++]);

                if (r < 0)
                        return r;
        }
        qsort(status->containers.items, status->containers.n, sizeof(ContainerStatus),
              compare_by_name);
        return 0;
}

/* When a condition that we tell for the first time came true: an agent that was restarted must not
 * make it look as if the pod had become ready just now. */
static uint64_t first_transition(const PodLife *life, const PodStatus *status,
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
                return MAX(latest, life->start_time);
        for (size_t i = 0; i < status->containers.n; i++)
                latest = MAX(latest, status->containers.items[i].state.started_at);
        return latest > 0 ? latest : life->start_time;
}

static void set_condition(PodLife *life, PodStatus *status, PodConditionType type, bool is_true,
                          const char *reason, const char *message) {
        PodCondition provisional = { 0 };
        /* What is told before it is known what an earlier agent left is no transition. */
        PodCondition *known = life->must_clean ? &provisional : &life->conditions[type];

        if (known->last_transition == 0)
                known->last_transition = first_transition(life, status, type);
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
static void set_passing(PodLife *life, PodStatus *status, PodConditionType type, const char *reason,
                        const char *message) {
        set_condition(life, status, type, message != NULL, NULL, NULL);
        if (!message)
                return;
        status->conditions[type].reason = strdup(reason);
        status->conditions[type].message = strdup(message);
}

static void fill_initialized(PodLife *life, PodStatus *status) {
        cleanup_free char *incomplete = incomplete_containers(&life->pod->spec, status);
        bool is_done = !incomplete || pod_has_initialized(status);

        set_condition(life, status, CONDITION_INITIALIZED, is_done, "ContainersNotInitialized",
                      incomplete);
        if (is_done && status->phase == POD_SUCCEEDED)
                set_text(&status->conditions[CONDITION_INITIALIZED].reason, "PodCompleted");
}

/* Ready is what its containers are, but where a gate of its own is closed. */
static void fill_ready(PodLife *life, PodStatus *status, const char *reason, const char *message) {
        bool is_ready = status->conditions[CONDITION_CONTAINERS_READY].is_true;
        cleanup_free char *gates = is_ready ? closed_gates(&life->pod->spec, status) : NULL;

        if (gates)
                set_condition(life, status, CONDITION_READY, false, "ReadinessGatesNotReady",
                              gates);
        else
                set_condition(life, status, CONDITION_READY, is_ready, reason, message);
}

static void fill_conditions(PodLife *life, PodStatus *status) {
        cleanup_free char *unready = unready_containers(&life->pod->spec, status);
        /* A shim that was found has been set up before. */
        bool has_sandbox =
                life->phase == PHASE_READY || (life->phase == PHASE_SYNCING && life->must_clean);
        bool ready = !unready && status->phase == POD_RUNNING;
        bool all_restart = life->all_restart != ALL_RESTART_NONE;
        const char *reason = "ContainersNotReady", *message = unready, *ended = NULL;

        if (status->phase == POD_SUCCEEDED || status->phase == POD_FAILED) {
                reason = ended = status->phase == POD_SUCCEEDED ? "PodCompleted" : "PodFailed";
                message = NULL;
        }
        if (life->rejection) /* and of its containers nothing is told */
                reason = "UnknownContainerStatuses";
        set_condition(life, status, CONDITION_READY_TO_START_CONTAINERS, has_sandbox, NULL,
                      life->trouble);
        fill_initialized(life, status);
        set_condition(life, status, CONDITION_CONTAINERS_READY, ready, reason, message);
        set_condition(life, status, CONDITION_SCHEDULED, true, NULL, NULL);
        set_passing(life, status, CONDITION_RESIZE_IN_PROGRESS, "Error", life->resize_trouble);
        set_passing(life, status, CONDITION_EDIT_PENDING, "SuccessorNotReady", life->edit_trouble);
        set_passing(life, status, CONDITION_DISRUPTION_TARGET, "TerminationByKubelet",
                    pod_life_is_evicted(life) ? life->failure.message : NULL);
        set_condition(life, status, CONDITION_ALL_CONTAINERS_RESTARTING, all_restart, ended, NULL);
        if (all_restart)
                set_text(&status->conditions[CONDITION_ALL_CONTAINERS_RESTARTING].reason,
                         "RestartAllContainersStarted");
        fill_ready(life, status, reason, message); /* gates ask for any of them */
}

static void fill_addresses(const PodLife *life, PodStatus *status) {
        const char *first = attachment_address(life->attachment, 0);
        const char *second = attachment_address(life->attachment, 1);

        status->pod_ip = first ? strdup(first) : NULL;
        status->other_pod_ip = second ? strdup(second) : NULL;
}

static void fill_phase(const PodLife *life, PodStatus *status) {
        if (life->rejection) {
                status->phase = POD_FAILED;
                status->reason = strdup(life->rejection);
                status->message = strdup(strna(life->rejection_message));
                return;
        }
        if (pod_life_has_failed(life)) {
                status->phase = POD_FAILED;
                status->reason = strdup(life->failure.reason);
                status->message = strdup(life->failure.message);
                return;
        }
        /* A file's pod is never over, and when it ends it is gone. */
        status->phase = pod_phase(&life->pod->spec, status, life->all_restart != ALL_RESTART_NONE,
                                  !life->is_wanted && pod_is_of_api(life->pod));
}

int pod_life_status(PodLife *life, PodStatus *ret) {
        const char *host_ip = life->context->host_ip;
        PodStatus status = {
                .is_syncing = !pod_life_is_synced(life),
                .start_time = life->start_time,
                .deletion_time = life->deletion_time,
                .qos_class = pod_qos_class(&life->pod->spec),
                .may_restart_all = spec_may_restart_all(&life->pod->spec),
        };
        int r = fill_containers(life, &status);

        if (r < 0) {
                pod_status_done(&status);
                return r;
        }
        fill_phase(life, &status);
        status.host_ip = host_ip ? strdup(host_ip) : NULL;
        /* In the host's network the pod has the node's address, from the moment its sandbox is
         * there. */
        if (life->pod->spec.host_network && life->phase == PHASE_READY && host_ip)
                status.pod_ip = strdup(host_ip);
        else if (life->attachment)
                fill_addresses(life, &status);
        fill_conditions(life, &status);
        *ret = status;
        return 0;
}
