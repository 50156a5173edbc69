/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pods/status/pod-status.h"

#include "agent/model/containers.h"
#include "agent/pods/pod/pod-preemption.h"
#include "agent/pods/status/pod-phase.h"
#include "common/cleanup.h"
#include "common/clock.h"

static int compare_status_by_name(const void *a, const void *b) {
        const ContainerStatus *x = a, *y = b;

        return strcmp(x->name, y->name);
}

static void set_status_text(char **text, const char *value) {
        free(*text);
        *text = strdup(value);
}

static bool is_restarting_all_containers(const PodStatusInput *input) {
        return input->containers->restart_all != RESTART_ALL_NONE;
}

static ContainerStatusList *status_list_of(const PodSpec *spec, size_t i, PodStatus *status) {
        if (i < spec->init_containers.n)
                return &status->init_containers;
        return i < spec->init_containers.n + spec->containers.n ? &status->containers
                                                                : &status->ephemeral_containers;
}

static void sort_statuses_by_name(ContainerStatusList *list) {
        if (list->n > 1)
                qsort(list->items, list->n, sizeof(ContainerStatus), compare_status_by_name);
}

static int container_statuses_new(size_t n, ContainerStatusList *ret) {
        ret->items = n > 0 ? calloc(n, sizeof(ContainerStatus)) : NULL;
        return n > 0 && !ret->items ? -ENOMEM : 0;
}

static int fill_container_statuses(const PodStatusInput *input, PodStatus *status) {
        const PodSpec *spec = &input->pod->pod->spec;
        const PodContainerStatusInput container_input = {
                .awaited_pods = input->awaited_pods,
                .last_error = input->last_error,
                .waits_for_restart_all = input->containers->restart_all == RESTART_ALL_BACK_OFF,
                .has_resize_error = input->resize_error != NULL,
        };

        if (container_statuses_new(spec->init_containers.n, &status->init_containers) < 0 ||
            container_statuses_new(spec->containers.n, &status->containers) < 0 ||
            container_statuses_new(spec->ephemeral_containers.n, &status->ephemeral_containers) < 0)
                return -ENOMEM;
        if (input->admission->rejection_reason) /* the kubelet reports no containers either */
                return 0;
        for (size_t i = 0; i < input->containers->n; i++) {
                ContainerStatusList *list = status_list_of(spec, i, status);
                int r = pod_container_status(input->containers->items[i], &container_input,
                                             &list->items[list->n++]);

                if (r < 0)
                        return r;
        }
        sort_statuses_by_name(&status->containers);
        sort_statuses_by_name(&status->ephemeral_containers);
        return 0;
}

/* The transition time of a condition that is reported for the first time. After a restart of the
 * agent a pod must not appear to have just become ready. */
static uint64_t first_transition_time(const PodStatusInput *input, const PodStatus *status,
                                      PodConditionType type) {
        uint64_t latest = 0;

        if (pod_condition_is_passing(type))
                return input->now;
        if (type == CONDITION_INITIALIZED)
                for (size_t i = 0; i < status->init_containers.n; i++)
                        latest = MAX(latest,
                                     MAX(status->init_containers.items[i].state.started_at,
                                         status->init_containers.items[i].state.finished_at));
        if (type != CONDITION_READY && type != CONDITION_CONTAINERS_READY)
                return MAX(latest, input->pod->start_time);
        for (size_t i = 0; i < status->containers.n; i++)
                latest = MAX(latest, status->containers.items[i].state.started_at);
        return latest > 0 ? latest : input->pod->start_time;
}

/* Until the state from an earlier agent is known, nothing counts as a transition. */
static uint64_t transition_time(const PodStatusInput *input, const PodStatus *previous,
                                const PodStatus *status, PodConditionType type, bool is_true) {
        const PodCondition *before = &previous->conditions[type];

        if (previous->version == 0 || previous->is_provisional || input->is_provisional)
                return first_transition_time(input, status, type);
        return before->is_true == is_true ? before->last_transition : input->now;
}

static void set_pod_condition(const PodStatusInput *input, const PodStatus *previous,
                              PodStatus *status, PodConditionType type, bool is_true,
                              const char *reason, const char *message) {
        status->conditions[type] = (PodCondition){
                .is_true = is_true,
                .reason = reason && !is_true ? strdup(reason) : NULL,
                .message = message && !is_true ? strdup(message) : NULL,
                .last_transition = transition_time(input, previous, status, type, is_true),
        };
}

/* A condition that is reported only while it is true. */
static void set_transient_condition(const PodStatusInput *input, const PodStatus *previous,
                                    PodStatus *status, PodConditionType type, const char *reason,
                                    const char *message) {
        set_pod_condition(input, previous, status, type, message != NULL, NULL, NULL);
        if (!message)
                return;
        status->conditions[type].reason = strdup(reason);
        status->conditions[type].message = strdup(message);
}

static void fill_initialized_condition(const PodStatusInput *input, const PodStatus *previous,
                                       PodStatus *status) {
        cleanup_free char *incomplete = list_incomplete_containers(&input->pod->pod->spec, status);
        bool is_done = !incomplete || pod_was_initialized(status);

        set_pod_condition(input, previous, status, CONDITION_INITIALIZED, is_done,
                          "ContainersNotInitialized", incomplete);
        if (is_done && status->phase == POD_SUCCEEDED)
                set_status_text(&status->conditions[CONDITION_INITIALIZED].reason, "PodCompleted");
}

/* The condition Ready: a pod is ready when its containers are and all readinessGates are true. */
static void fill_ready_condition(const PodStatusInput *input, const PodStatus *previous,
                                 PodStatus *status, const char *reason, const char *message) {
        bool is_ready = status->conditions[CONDITION_CONTAINERS_READY].is_true;
        cleanup_free char *unready_gates =
                is_ready ? list_unready_readiness_gates(&input->pod->pod->spec, status,
                                                        &input->pod->external_conditions)
                         : NULL;

        if (unready_gates)
                set_pod_condition(input, previous, status, CONDITION_READY, false,
                                  "ReadinessGatesNotReady", unready_gates);
        else
                set_pod_condition(input, previous, status, CONDITION_READY, is_ready, reason,
                                  message);
}

/* The reason why the node has stopped the pod in favour of another one; NULL: it has not. */
static const char *find_disruption(const PodFailure *failure) {
        if (failure->evicted_at > 0)
                return failure->message;
        if (streq_ptr(failure->reason, NAME_CONFLICT_REASON))
                return failure->message;
        if (!streq_ptr(failure->reason, PREEMPTION_REASON))
                return NULL;
        return streq(failure->message, PREEMPTION_MESSAGE) ? PREEMPTION_DISRUPTION
                                                           : failure->message;
}

/* PodResizeInProgress, mainstay.io/EditPending, DisruptionTarget: present only while true. */
static void fill_transient_conditions(const PodStatusInput *input, const PodStatus *previous,
                                      PodStatus *status) {
        set_transient_condition(input, previous, status, CONDITION_RESIZE_IN_PROGRESS, "Error",
                                input->resize_error);
        set_transient_condition(input, previous, status, CONDITION_EDIT_PENDING,
                                "SuccessorNotReady", input->edit_error);
        set_transient_condition(input, previous, status, CONDITION_DISRUPTION_TARGET,
                                "TerminationByKubelet", find_disruption(input->failure));
}

/* PodReadyToStartContainers, Initialized, ContainersReady, PodScheduled, AllContainersRestarting,
 * Ready. */
static void fill_pod_conditions(const PodStatusInput *input, const PodStatus *previous,
                                PodStatus *status) {
        cleanup_free char *unready = list_unready_containers(&input->pod->pod->spec, status);
        bool ready = !unready && status->phase == POD_RUNNING;
        bool all_restart = is_restarting_all_containers(input);
        const char *reason = "ContainersNotReady", *message = unready, *ended = NULL;

        if (status->phase == POD_SUCCEEDED || status->phase == POD_FAILED) {
                reason = ended = status->phase == POD_SUCCEEDED ? "PodCompleted" : "PodFailed";
                message = NULL;
        }
        if (input->admission->rejection_reason)
                reason = "UnknownContainerStatuses";
        set_pod_condition(input, previous, status, CONDITION_READY_TO_START_CONTAINERS,
                          input->has_sandbox, input->awaited_pods ? "WaitingForPods" : NULL,
                          input->awaited_pods ? input->awaited_pods : input->last_error);
        fill_initialized_condition(input, previous, status);
        set_pod_condition(input, previous, status, CONDITION_CONTAINERS_READY, ready, reason,
                          message);
        set_pod_condition(input, previous, status, CONDITION_SCHEDULED, true, NULL, NULL);
        fill_transient_conditions(input, previous, status);
        set_pod_condition(input, previous, status, CONDITION_ALL_CONTAINERS_RESTARTING, all_restart,
                          ended, NULL);
        if (all_restart)
                set_status_text(&status->conditions[CONDITION_ALL_CONTAINERS_RESTARTING].reason,
                                "RestartAllContainersStarted");
        /* Ready comes last, because readiness gates may name any other condition. */
        fill_ready_condition(input, previous, status, reason, message);
}

static void fill_pod_phase(const PodStatusInput *input, PodStatus *status) {
        const PodAdmission *admission = input->admission;
        const Pod *pod = input->pod->pod;

        if (admission->rejection_reason) {
                status->phase = POD_FAILED;
                status->reason = strdup(admission->rejection_reason);
                status->message = strdup(strna(admission->rejection_message));
                return;
        }
        if (input->failure->reason) {
                status->phase = POD_FAILED;
                status->reason = strdup(input->failure->reason);
                status->message = strdup(input->failure->message);
                return;
        }
        /* Only the API server gets the final phase of a deleted pod. */
        status->phase = pod_phase(&pod->spec, status, is_restarting_all_containers(input),
                                  !input->pod->is_desired && pod_is_of_api(pod));
}

static char *choose_pod_address(const char *address, const char *previous, bool has_terminated) {
        if (!address && has_terminated)
                address = previous;
        return address ? strdup(address) : NULL;
}

/* status.hostIP, hostIPs, podIP and podIPs. */
static void fill_pod_addresses(const PodStatusInput *input, const PodStatus *previous,
                               PodStatus *status) {
        bool has_terminated = status->phase == POD_SUCCEEDED || status->phase == POD_FAILED;
        const PodInstance *pod = input->pod;
        const char *const *host_ips = pod->context->host_ips;
        const char *first = NULL, *second = NULL;

        status->host_ip = host_ips[0] ? strdup(host_ips[0]) : NULL;
        status->other_host_ip = host_ips[1] ? strdup(host_ips[1]) : NULL;
        /* A pod in the host network has the node's addresses once its sandbox is ready. */
        if (pod->pod->spec.host_network && input->is_sandbox_ready) {
                first = host_ips[0];
                second = host_ips[1];
        } else if (pod->attachment) {
                first = network_attachment_address(pod->attachment, 0);
                second = network_attachment_address(pod->attachment, 1);
        }
        status->pod_ip = choose_pod_address(first, previous->pod_ip, has_terminated);
        status->other_pod_ip = choose_pod_address(second, previous->other_pod_ip, has_terminated);
}

static bool has_running_container(const PodStatus *status) {
        const ContainerStatusList *lists[] = { &status->init_containers, &status->containers };

        for (size_t l = 0; l < N_ELEMENTS(lists); l++)
                for (size_t i = 0; i < lists[l]->n; i++)
                        if (lists[l]->items[i].state.kind == STATE_RUNNING)
                                return true;
        return false;
}

/* As in the kubelet, a pod that is stopped because it failed keeps its phase while a container
 * runs: controllers replace a failed pod, and the scheduler reassigns its resources. */
static void delay_failed_phase(const PodStatusInput *input, PodStatus *status) {
        if (!input->failure->reason || !has_running_container(status))
                return;
        status->phase = pod_phase(&input->pod->pod->spec, status,
                                  is_restarting_all_containers(input), false);
        free(status->reason);
        free(status->message);
        status->reason = status->message = NULL;
}

static int fill_pod_status(const PodStatusInput *input, const PodStatus *previous, PodStatus *ret) {
        const PodSpec *spec = &input->pod->pod->spec;
        int r;

        *ret = (PodStatus){
                .n_refs = 1,
                .version = previous->version + 1,
                .n_edits = input->pod->n_edits,
                .is_syncing = input->is_syncing,
                .is_provisional = input->is_provisional,
                .start_time = input->pod->start_time,
                .deletion_time = input->deletion_time,
                .qos_class = pod_qos_class(spec),
                .may_restart_all = pod_may_restart_all_containers(spec),
        };
        r = fill_container_statuses(input, ret);
        if (r < 0)
                return r;
        fill_pod_phase(input, ret);
        fill_pod_addresses(input, previous, ret);
        fill_pod_conditions(input, previous, ret);
        delay_failed_phase(input, ret);
        return 0;
}

int compute_pod_status(const PodStatusInput *input, const PodStatus *previous,
                       const PodStatus **ret) {
        static const PodStatus none = { 0 };
        PodStatus *status = calloc(1, sizeof(*status));
        int r = status ? fill_pod_status(input, previous ? previous : &none, status) : -ENOMEM;

        if (r < 0) {
                if (status)
                        pod_status_unref(status);
                return r;
        }
        if (previous && pod_status_equal(previous, status)) {
                pod_status_unref(status);
                *ret = pod_status_ref(previous);
        } else
                *ret = status;
        return 0;
}
