/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pods/status/pod-phase.h"

#include "agent/model/containers.h"
#include "agent/pods/machine/restart-policy.h"

#include <stdio.h>
#include <stdlib.h>

/* How many containers are in each state. */
typedef struct ContainerCounts {
        unsigned pending_init;
        unsigned pending_sidecars;
        unsigned failed_init; /* permanently */
        unsigned waiting;
        unsigned running;
        unsigned stopped;
        unsigned stopped_for_good;
        unsigned succeeded;
} ContainerCounts;

/* How the container ended, if it does not run now. */
static const ContainerState *terminated_state_of(const ContainerStatus *status) {
        if (status->state.kind == STATE_TERMINATED)
                return &status->state;
        if (status->state.kind == STATE_WAITING && status->last_state.kind == STATE_TERMINATED)
                return &status->last_state;
        return NULL;
}

static bool terminates_for_good(const PodSpec *spec, const Container *container, int exit_code) {
        static const BackOffLimits any = { 1, 1 };
        ContainerRestartPolicy terms = container_restart_policy(spec, container);

        return decide_restart(&terms, exit_code, 0, 0, &any).verdict == RESTART_NOT;
}

static void count_init_container(const PodSpec *spec, const Container *container,
                                 const ContainerStatus *status, ContainerCounts *count) {
        const ContainerState *end = terminated_state_of(status);

        if (end && end->exit_code != 0)
                count->failed_init += terminates_for_good(spec, container, end->exit_code);
        else if (status->state.kind != STATE_TERMINATED)
                /* The container may also be pending again, because its sandbox was lost or all
                 * containers are being restarted. */
                count->pending_init++;
}

static void count_sidecar_container(const ContainerStatus *status, ContainerCounts *count) {
        if (status->state.kind == STATE_RUNNING) {
                count->running++;
                count->pending_sidecars += !status->started;
        } else if (!terminated_state_of(status)) {
                count->pending_sidecars++;
                count->waiting++;
        }
}

static void count_main_container(const PodSpec *spec, const Container *container,
                                 const ContainerStatus *status, ContainerCounts *count) {
        const ContainerState *end = terminated_state_of(status);

        if (status->state.kind == STATE_RUNNING)
                count->running++;
        else if (end) {
                count->stopped++;
                /* A waiting container will run again, because it was edited. */
                count->stopped_for_good += status->state.kind == STATE_TERMINATED &&
                                           terminates_for_good(spec, container, end->exit_code);
                count->succeeded += status->state.kind == STATE_TERMINATED && end->exit_code == 0;
        } else
                count->waiting++;
}

static ContainerCounts count_containers(const PodSpec *spec, const PodStatus *status) {
        const Container *container;
        ContainerCounts count = { 0 };

        pod_foreach_container(container, spec) {
                const ContainerStatus *one = pod_status_find_container(status, container->name);
                ContainerRole role = container_role(spec, container);

                if (role == ROLE_EPHEMERAL)
                        continue;
                if (!one)
                        count.waiting++;
                else if (role == ROLE_INIT)
                        count_init_container(spec, container, one, &count);
                else if (role == ROLE_SIDECAR)
                        count_sidecar_container(one, &count);
                else
                        count_main_container(spec, container, one, &count);
        }
        return count;
}

bool pod_was_initialized(const PodStatus *status) {
        for (size_t i = 0; i < status->containers.n; i++)
                if (status->containers.items[i].state.kind == STATE_RUNNING ||
                    terminated_state_of(&status->containers.items[i]))
                        return true;
        return false;
}

PodPhase pod_phase(const PodSpec *spec, const PodStatus *status, bool all_restart, bool is_over) {
        ContainerCounts count = count_containers(spec, status);

        if (is_over && count.running == 0)
                return count.waiting == 0 && count.stopped > 0 && count.stopped == count.succeeded
                               ? POD_SUCCEEDED
                               : POD_FAILED;
        if (all_restart)
                return pod_was_initialized(status) ? POD_RUNNING : POD_PENDING;
        if (count.failed_init > 0)
                return POD_FAILED;
        if (count.pending_init > 0 || count.waiting > 0 ||
            (count.pending_sidecars > 0 && !pod_was_initialized(status)))
                return POD_PENDING;
        if (count.running > 0 || count.stopped != count.stopped_for_good)
                return POD_RUNNING;
        if (count.stopped == 0)
                return POD_PENDING;
        return count.stopped == count.succeeded ? POD_SUCCEEDED : POD_FAILED;
}

/* ---- messages ---- */

static bool is_incomplete_init(ContainerRole role, const ContainerStatus *status) {
        if (role == ROLE_MAIN || role == ROLE_EPHEMERAL)
                return false;
        return !status || !(role == ROLE_SIDECAR ? status->started : status->ready);
}

static bool is_unready_container(ContainerRole role, const ContainerStatus *status) {
        return role != ROLE_INIT && role != ROLE_EPHEMERAL && !(status && status->ready);
}

static char *list_containers(const PodSpec *spec, const PodStatus *status, const char *what,
                             bool (*is_listed)(ContainerRole, const ContainerStatus *)) {
        const Container *container;
        char *text = NULL;
        size_t length, n = 0;
        FILE *out = open_memstream(&text, &length);

        if (!out)
                return NULL;
        (void) fprintf(out, "containers with %s status: [", what);
        pod_foreach_container(container, spec)
                if (is_listed(container_role(spec, container),
                              pod_status_find_container(status, container->name)))
                        (void) fprintf(out, "%s%s", n++ > 0 ? " " : "", container->name);
        (void) fprintf(out, "]");
        if (fclose(out) != 0 || n == 0) {
                free(text);
                return NULL;
        }
        return text;
}

char *list_incomplete_containers(const PodSpec *spec, const PodStatus *status) {
        return list_containers(spec, status, "incomplete", is_incomplete_init);
}

char *list_unready_containers(const PodSpec *spec, const PodStatus *status) {
        return list_containers(spec, status, "unready", is_unready_container);
}

/* NULL: it is not reported. */
static const PodCondition *find_reported_condition(const PodStatus *status, const char *name) {
        for (PodConditionType type = 0; type < N_POD_CONDITIONS; type++)
                if (streq(pod_condition_names[type], name))
                        return status->conditions[type].is_true || !pod_condition_is_passing(type)
                                       ? &status->conditions[type]
                                       : NULL;
        return NULL;
}

/* "True", "False" or "Unknown"; NULL: not reported. Controllers have set the conditions that are
 * not the agent's. */
static const char *find_condition_status(const PodStatus *status, const StringMap *external,
                                         const char *type) {
        const PodCondition *condition = find_reported_condition(status, type);

        if (condition)
                return condition->is_true ? "True" : "False";
        return string_map_get(external, type);
}

char *list_unready_readiness_gates(const PodSpec *spec, const PodStatus *status,
                                   const StringMap *external) {
        char *text = NULL;
        size_t length, n = 0;
        FILE *out = open_memstream(&text, &length);

        if (!out)
                return NULL;
        for (size_t i = 0; i < spec->readiness_gates.n; i++) {
                const char *type = spec->readiness_gates.items[i].condition_type;
                const char *value = find_condition_status(status, external, type);

                if (value && streq(value, "True"))
                        continue;
                if (n++ > 0)
                        (void) fputs(", ", out);
                if (value)
                        (void) fprintf(
                                out,
                                "the status of pod readiness gate \"%s\" is not \"True\", but "
                                "%s",
                                type, value);
                else
                        (void) fprintf(out,
                                       "corresponding condition of pod readiness gate \"%s\" does "
                                       "not exist.",
                                       type);
        }
        if (fclose(out) != 0 || n == 0) {
                free(text);
                return NULL;
        }
        return text;
}
