/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/model/status.h"

#include "agent/model/schema.h"

#include <errno.h>
#include <stdlib.h>

const char *const pod_phase_names[N_POD_PHASES] = {
        [POD_PENDING] = "Pending", [POD_RUNNING] = "Running", [POD_SUCCEEDED] = "Succeeded",
        [POD_FAILED] = "Failed",   [POD_UNKNOWN] = "Unknown",
};

const char *const pod_condition_names[N_POD_CONDITIONS] = {
        [CONDITION_READY_TO_START_CONTAINERS] = "PodReadyToStartContainers",
        [CONDITION_INITIALIZED] = "Initialized",
        [CONDITION_READY] = "Ready",
        [CONDITION_CONTAINERS_READY] = "ContainersReady",
        [CONDITION_SCHEDULED] = "PodScheduled",
        [CONDITION_ALL_CONTAINERS_RESTARTING] = "AllContainersRestarting",
        [CONDITION_RESIZE_IN_PROGRESS] = "PodResizeInProgress",
        [CONDITION_EDIT_PENDING] = "mainstay.io/EditPending",
        [CONDITION_DISRUPTION_TARGET] = "DisruptionTarget",
};

bool pod_condition_is_passing(PodConditionType type) {
        return type == CONDITION_RESIZE_IN_PROGRESS || type == CONDITION_EDIT_PENDING ||
               type == CONDITION_DISRUPTION_TARGET;
}

void container_state_done(ContainerState *state) {
        free(state->reason);
        free(state->message);
        free(state->container_id);
        *state = (ContainerState){ 0 };
}

void container_user_done(ContainerUser *user) {
        free(user->groups.items);
        *user = (ContainerUser){ 0 };
}

int container_user_copy(const ContainerUser *user, ContainerUser *ret) {
        ContainerUser copy = *user;

        copy.groups.items = calloc(user->groups.n + 1, sizeof(*copy.groups.items));
        if (!copy.groups.items)
                return -ENOMEM;
        if (user->groups.n > 0)
                memcpy(copy.groups.items, user->groups.items,
                       user->groups.n * sizeof(*copy.groups.items));
        *ret = copy;
        return 0;
}

static void container_resources_free(ResourceRequirements *resources) {
        if (!resources)
                return;
        schema_done(&resource_requirements_schema, resources);
        free(resources);
}

static void container_status_done(ContainerStatus *status) {
        free(status->name);
        container_state_done(&status->state);
        container_state_done(&status->last_state);
        free(status->image);
        free(status->image_id);
        free(status->container_id);
        container_resources_free(status->resources);
        container_user_done(&status->user);
        resource_status_list_done(&status->allocated_resources_status);
}

static void container_statuses_done(ContainerStatusList *list) {
        for (size_t i = 0; i < list->n; i++)
                container_status_done(&list->items[i]);
        free(list->items);
}

/* ---- comparison ---- */

static bool is_same_state(const ContainerState *a, const ContainerState *b) {
        return a->kind == b->kind && streq_ptr(a->reason, b->reason) &&
               streq_ptr(a->message, b->message) && a->exit_code == b->exit_code &&
               a->signal == b->signal && streq_ptr(a->container_id, b->container_id) &&
               a->started_at == b->started_at && a->finished_at == b->finished_at;
}

static bool is_same_user(const ContainerUser *a, const ContainerUser *b) {
        return a->is_known == b->is_known && a->uid == b->uid && a->gid == b->gid &&
               a->groups.n == b->groups.n &&
               (a->groups.n == 0 || memcmp(a->groups.items, b->groups.items,
                                           a->groups.n * sizeof(*a->groups.items)) == 0);
}

static bool is_same_resource(const ResourceStatus *a, const ResourceStatus *b) {
        if (!streq_ptr(a->name, b->name) || a->resources.n != b->resources.n)
                return false;
        for (size_t i = 0; i < a->resources.n; i++)
                if (!streq_ptr(a->resources.items[i].id, b->resources.items[i].id) ||
                    a->resources.items[i].is_unhealthy != b->resources.items[i].is_unhealthy)
                        return false;
        return true;
}

static bool are_same_resources(const ResourceStatusList *a, const ResourceStatusList *b) {
        if (a->n != b->n)
                return false;
        for (size_t i = 0; i < a->n; i++)
                if (!is_same_resource(&a->items[i], &b->items[i]))
                        return false;
        return true;
}

static bool are_same_requirements(const ResourceRequirements *a, const ResourceRequirements *b) {
        return a && b ? schema_equal(&resource_requirements_schema, a, b) : a == b;
}

static bool is_same_container(const ContainerStatus *a, const ContainerStatus *b) {
        return streq_ptr(a->name, b->name) && is_same_state(&a->state, &b->state) &&
               is_same_state(&a->last_state, &b->last_state) && a->ready == b->ready &&
               a->started == b->started && a->restart_count == b->restart_count &&
               streq_ptr(a->image, b->image) && streq_ptr(a->image_id, b->image_id) &&
               streq_ptr(a->container_id, b->container_id) &&
               are_same_requirements(a->resources, b->resources) &&
               is_same_user(&a->user, &b->user) && a->stop_signal == b->stop_signal &&
               are_same_resources(&a->allocated_resources_status, &b->allocated_resources_status);
}

static bool are_same_containers(const ContainerStatusList *a, const ContainerStatusList *b) {
        if (a->n != b->n)
                return false;
        for (size_t i = 0; i < a->n; i++)
                if (!is_same_container(&a->items[i], &b->items[i]))
                        return false;
        return true;
}

static bool is_same_condition(const PodCondition *a, const PodCondition *b) {
        return a->is_true == b->is_true && streq_ptr(a->reason, b->reason) &&
               streq_ptr(a->message, b->message) && a->last_transition == b->last_transition;
}

static bool are_same_facts(const PodStatus *a, const PodStatus *b) {
        return a->n_edits == b->n_edits && a->phase == b->phase && a->is_syncing == b->is_syncing &&
               a->is_rejected == b->is_rejected && a->is_provisional == b->is_provisional &&
               a->may_restart_all == b->may_restart_all && a->start_time == b->start_time &&
               a->deletion_time == b->deletion_time && a->qos_class == b->qos_class &&
               streq_ptr(a->reason, b->reason) && streq_ptr(a->message, b->message) &&
               streq_ptr(a->host_ip, b->host_ip) && streq_ptr(a->other_host_ip, b->other_host_ip) &&
               streq_ptr(a->pod_ip, b->pod_ip) && streq_ptr(a->other_pod_ip, b->other_pod_ip);
}

bool pod_status_equal(const PodStatus *a, const PodStatus *b) {
        for (size_t i = 0; i < N_POD_CONDITIONS; i++)
                if (!is_same_condition(&a->conditions[i], &b->conditions[i]))
                        return false;
        return are_same_facts(a, b) &&
               are_same_containers(&a->init_containers, &b->init_containers) &&
               are_same_containers(&a->containers, &b->containers) &&
               are_same_containers(&a->ephemeral_containers, &b->ephemeral_containers);
}

/* ---- queries ---- */

bool pod_status_waits_for_node(const PodStatus *status) {
        bool was_kept_out = status->reason && streq(status->reason, "Evicted") &&
                            status->init_containers.n + status->containers.n == 0;

        return status->conditions[CONDITION_DISRUPTION_TARGET].is_true || was_kept_out;
}

bool pod_status_is_ready_or_done(const PodStatus *status) {
        return status->conditions[CONDITION_READY].is_true || status->phase == POD_SUCCEEDED;
}

const ContainerStatus *pod_status_find_container(const PodStatus *status, const char *name) {
        const ContainerStatusList *lists[] = { &status->init_containers, &status->containers };

        for (size_t l = 0; l < N_ELEMENTS(lists); l++)
                for (size_t i = 0; i < lists[l]->n; i++)
                        if (streq(lists[l]->items[i].name, name))
                                return &lists[l]->items[i];
        return NULL;
}

void pod_status_done(PodStatus *status) {
        for (size_t i = 0; i < N_POD_CONDITIONS; i++) {
                free(status->conditions[i].reason);
                free(status->conditions[i].message);
        }
        container_statuses_done(&status->init_containers);
        container_statuses_done(&status->containers);
        container_statuses_done(&status->ephemeral_containers);
        free(status->reason);
        free(status->message);
        free(status->host_ip);
        free(status->other_host_ip);
        free(status->pod_ip);
        free(status->other_pod_ip);
        *status = (PodStatus){ 0 };
}

const PodStatus *pod_status_ref(const PodStatus *status) {
        if (status)
                ((PodStatus *) (uintptr_t) status)->n_refs++;
        return status;
}

const PodStatus *pod_status_unref(const PodStatus *status) {
        PodStatus *owned = (PodStatus *) (uintptr_t) status;

        if (!owned || --owned->n_refs > 0)
                return NULL;
        pod_status_done(owned);
        free(owned);
        return NULL;
}
