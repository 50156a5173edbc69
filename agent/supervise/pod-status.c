/* SPDX-License-Identifier: Apache-2.0 */
/* A pod's life in the words of core/v1: statuses of containers, phase, conditions. */

#include "agent/supervise/pod-internal.h"
#include "common/cleanup.h"
#include "common/clock.h"

static int compare_by_name(const void *a, const void *b) {
        const ContainerStatus *x = a, *y = b;

        return strcmp(x->name, y->name);
}

/* A container that has not started yet waits for what the pod waits for. */
static void explain_waiting(const PodLife *life, const PodContainer *c, ContainerStatus *status) {
        if (life->trouble && container_is_waiting(c->life) && !status->state.message)
                status->state.message = strdup(life->trouble);
}

static int fill_containers(const PodLife *life, PodStatus *status) {
        status->containers.items = calloc(life->n_containers, sizeof(ContainerStatus));
        if (!status->containers.items)
                return -ENOMEM;
        for (size_t i = 0; i < life->n_containers; i++) {
                const PodContainer *c = &life->containers[i];
                ContainerStatus *one = &status->containers.items[i];
                int r = container_status(c->life, life->pod->metadata.uid, one);

                status->containers.n = i + 1;
                if (r < 0)
                        return r;
                one->image = strdup(c->spec->image);
                one->image_id = strdup(strna(c->image_id));
                if (!one->image || !one->image_id)
                        return -ENOMEM;
                explain_waiting(life, c, one);
        }
        qsort(status->containers.items, status->containers.n, sizeof(ContainerStatus),
              compare_by_name);
        return 0;
}

/* "containers with unready status: [a b]", or NULL where all are ready. */
static char *unready_containers(const PodStatus *status) {
        char *text = NULL;
        size_t length, n = 0;
        FILE *out = open_memstream(&text, &length);

        if (!out)
                return NULL;
        (void) fprintf(out, "containers with unready status: [");
        for (size_t i = 0; i < status->containers.n; i++)
                if (!status->containers.items[i].ready)
                        (void) fprintf(out, "%s%s", n++ > 0 ? " " : "",
                                       status->containers.items[i].name);
        (void) fprintf(out, "]");
        if (fclose(out) != 0 || n == 0) {
                free(text);
                return NULL;
        }
        return text;
}

/* When a condition that we tell for the first time came true: an agent that was restarted must not
 * make it look as if the pod had become ready just now. */
static uint64_t first_transition(const PodLife *life, const PodStatus *status,
                                 PodConditionType type) {
        uint64_t latest = 0;

        if (pod_condition_is_passing(type))
                return now_realtime_usec();
        if (type != CONDITION_READY && type != CONDITION_CONTAINERS_READY)
                return life->start_time;
        for (size_t i = 0; i < status->containers.n; i++)
                latest = MAX(latest, status->containers.items[i].state.started_at);
        return latest > 0 ? latest : life->start_time;
}

static void set_condition(PodLife *life, PodStatus *status, PodConditionType type, bool is_true,
                          const char *reason, const char *message) {
        PodCondition *known = &life->conditions[type];

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

static void fill_conditions(PodLife *life, PodStatus *status) {
        cleanup_free char *unready = unready_containers(status);
        /* A shim that was found has been set up before. */
        bool has_sandbox =
                life->phase == PHASE_READY || (life->phase == PHASE_SYNCING && life->must_clean);
        bool ready = !unready && status->phase == POD_RUNNING;
        const char *reason = "ContainersNotReady", *message = unready;

        if (status->phase == POD_SUCCEEDED || status->phase == POD_FAILED) {
                reason = status->phase == POD_SUCCEEDED ? "PodCompleted" : "PodFailed";
                message = NULL;
        }
        set_condition(life, status, CONDITION_READY_TO_START_CONTAINERS, has_sandbox, NULL,
                      life->trouble);
        set_condition(life, status, CONDITION_INITIALIZED, true, NULL, NULL);
        set_condition(life, status, CONDITION_READY, ready, reason, message);
        set_condition(life, status, CONDITION_CONTAINERS_READY, ready, reason, message);
        set_condition(life, status, CONDITION_SCHEDULED, true, NULL, NULL);
        set_passing(life, status, CONDITION_RESIZE_IN_PROGRESS, "Error", life->resize_trouble);
        set_passing(life, status, CONDITION_EDIT_PENDING, "SuccessorNotReady", life->edit_trouble);
}

static void fill_addresses(const PodLife *life, PodStatus *status) {
        const char *first = attachment_address(life->attachment, 0);
        const char *second = attachment_address(life->attachment, 1);

        status->pod_ip = first ? strdup(first) : NULL;
        status->other_pod_ip = second ? strdup(second) : NULL;
}

int pod_life_status(PodLife *life, PodStatus *ret) {
        const char *host_ip = life->context->host_ip;
        PodStatus status = {
                .start_time = life->start_time,
                .deletion_time = life->deletion_time,
                .qos_class = pod_qos_class(&life->pod->spec),
        };
        int r = fill_containers(life, &status);

        if (r < 0) {
                pod_status_done(&status);
                return r;
        }
        status.phase = pod_phase(life->pod->spec.restart_policy, status.containers.items,
                                 status.containers.n);
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
