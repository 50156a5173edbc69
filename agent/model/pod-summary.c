/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/model/pod-summary.h"

#include "agent/model/json.h"
#include "agent/model/own-keys.h"
#include "agent/model/status-condition.h"
#include "common/clock.h"
#include "common/json-text.h"

#include <stdio.h>

/* The STATUS column has many sources: the pod's phase, its own reason, its init containers, then
 * its containers from last to first; each may override the earlier ones. The order is kubectl's. */

typedef struct PodSummaryBuilder {
        const json_t *pod;
        char *reason;
        size_t reason_size;
        int64_t restarts;
        uint64_t last_restart; /* realtime, microseconds */
        unsigned n_ready;
        unsigned n_total;
} PodSummaryBuilder;

static void set_reason(PodSummaryBuilder *sum, const char *prefix, const char *reason) {
        (void) snprintf(sum->reason, sum->reason_size, "%s%s", prefix, reason);
}

static void set_reason_number(PodSummaryBuilder *sum, const char *prefix, const char *what,
                              const json_t *number) {
        (void) snprintf(sum->reason, sum->reason_size, "%s%s:%lld", prefix, what,
                        (long long) json_integer_value(number));
}

/* A terminated container: its reason, or its exit code or signal. */
static void set_terminated(PodSummaryBuilder *sum, const char *prefix, const json_t *terminated) {
        const char *reason = json_text(terminated, "reason");
        const json_t *signal = json_object_get(terminated, "signal");

        if (reason && reason[0])
                set_reason(sum, prefix, reason);
        else if (json_integer_value(signal) != 0)
                set_reason_number(sum, prefix, "Signal", signal);
        else
                set_reason_number(sum, prefix, "ExitCode", json_object_get(terminated, "exitCode"));
}

static void count_restarts(PodSummaryBuilder *sum, const json_t *container) {
        const char *finished = json_text(container, "lastState", "terminated", "finishedAt");
        uint64_t usec;

        sum->restarts += json_integer_value(json_object_get(container, "restartCount"));
        if (finished && parse_rfc3339(finished, &usec) >= 0)
                sum->last_restart = MAX(sum->last_restart, usec);
}

static const json_t *find_container_by_name(const json_t *array, const char *name) {
        size_t i;
        json_t *item;

        json_array_foreach(array, i, item)
                if (streq_ptr(json_text(item, "name"), name))
                        return item;
        return NULL;
}

/* A restartable init container is a sidecar: it counts among the main containers. */
static bool is_sidecar_container_json(const json_t *spec) {
        return streq_ptr(json_text(spec, "restartPolicy"), "Always");
}

static bool is_condition_true(const json_t *pod, const char *type) {
        const json_t *condition = find_status_condition(pod, type);

        return condition && streq_ptr(json_text(condition, "status"), "True");
}

/* Kubernetes does not define a reason for a pull in progress. The progress in the message is more
 * useful than ContainerCreating. */
static bool set_pulling(PodSummaryBuilder *sum, const char *prefix, const json_t *container) {
        const char *message = json_text(container, "state", "waiting", "message");
        double done, total;

        if (!message || sscanf(message, "Pulling image: %lf of %lf MiB", &done, &total) != 2 ||
            total <= 0)
                return false;
        (void) snprintf(sum->reason, sum->reason_size, "%sPulling:%.0f%%", prefix,
                        100 * MIN(done, total) / total);
        return true;
}

/* Handles one init container. True if it blocks later containers; 'reason' is then the cause. */
static bool summarize_init_container(PodSummaryBuilder *sum, const json_t *container, size_t i) {
        const json_t *specs = json_at(sum->pod, "spec", "initContainers");
        const json_t *terminated = json_at(container, "state", "terminated");
        const char *waiting = json_text(container, "state", "waiting", "reason");
        bool sidecar = is_sidecar_container_json(
                find_container_by_name(specs, json_text(container, "name")));

        if (terminated && json_integer_value(json_object_get(terminated, "exitCode")) == 0)
                return false;
        if (sidecar && json_is_true(json_object_get(container, "started"))) {
                sum->n_ready += json_is_true(json_object_get(container, "ready"));
                return false;
        }
        if (terminated)
                set_terminated(sum, "Init:", terminated);
        else if (waiting && waiting[0] && !streq(waiting, "PodInitializing"))
                set_reason(sum, "Init:", waiting);
        else if (!set_pulling(sum, "Init:", container))
                (void) snprintf(sum->reason, sum->reason_size, "Init:%zu/%zu", i,
                                json_array_size(specs));
        return true;
}

/* True while an init container is incomplete. Afterwards only the restarts of sidecars count. */
static bool summarize_init_containers(PodSummaryBuilder *sum, PodSummaryBuilder *ret_sidecars) {
        const json_t *specs = json_at(sum->pod, "spec", "initContainers");
        size_t i;
        json_t *container, *spec;

        json_array_foreach(specs, i, spec)
                sum->n_total += is_sidecar_container_json(spec);
        json_array_foreach(json_at(sum->pod, "status", "initContainerStatuses"), i, container) {
                count_restarts(sum, container);
                if (is_sidecar_container_json(
                            find_container_by_name(specs, json_text(container, "name"))))
                        count_restarts(ret_sidecars, container);
                if (summarize_init_container(sum, container, i))
                        return true;
        }
        return false;
}

/* True if the container is ready and runs. */
static bool summarize_container(PodSummaryBuilder *sum, const json_t *container) {
        const char *waiting = json_text(container, "state", "waiting", "reason");
        const json_t *terminated = json_at(container, "state", "terminated");

        count_restarts(sum, container);
        if (waiting && waiting[0]) {
                if (!set_pulling(sum, "", container))
                        set_reason(sum, "", waiting);
        } else if (terminated)
                set_terminated(sum, "", terminated);
        else
                return json_is_true(json_object_get(container, "ready")) &&
                       json_at(container, "state", "running");
        return false;
}

static void summarize_containers(PodSummaryBuilder *sum) {
        const json_t *containers = json_at(sum->pod, "status", "containerStatuses");
        bool has_running = false;

        for (size_t i = json_array_size(containers); i > 0; i--) {
                if (!summarize_container(sum, json_array_get(containers, i - 1)))
                        continue;
                has_running = true;
                sum->n_ready++;
        }
        /* One container has completed and another one runs. */
        if (streq(sum->reason, "Completed") && has_running)
                set_reason(sum, "", is_condition_true(sum->pod, "Ready") ? "Running" : "NotReady");
}

static void summarize_deletion(PodSummaryBuilder *sum) {
        const char *phase = strna(json_text(sum->pod, "status", "phase"));

        if (!json_text(sum->pod, "metadata", "deletionTimestamp"))
                return;
        if (streq_ptr(json_text(sum->pod, "status", "reason"), "NodeLost"))
                set_reason(sum, "", "Unknown");
        else if (!streq(phase, "Succeeded") && !streq(phase, "Failed"))
                set_reason(sum, "", "Terminating");
}

static void write_restarts(const PodSummaryBuilder *sum, uint64_t now_usec, char *buffer,
                           size_t size) {
        char ago[DURATION_SIZE];

        if (sum->restarts == 0 || sum->last_restart == 0) {
                (void) snprintf(buffer, size, "%lld", (long long) sum->restarts);
                return;
        }
        format_duration(ago, ((int64_t) now_usec - (int64_t) sum->last_restart) /
                                     (int64_t) USEC_PER_SEC);
        (void) snprintf(buffer, size, "%lld (%s ago)", (long long) sum->restarts, ago);
}

static void write_readiness_gates(const json_t *pod, char *buffer, size_t size) {
        const json_t *gates = json_at(pod, "spec", "readinessGates");
        unsigned n_true = 0;
        size_t i;
        json_t *gate;

        if (json_array_size(gates) == 0) {
                (void) snprintf(buffer, size, "<none>");
                return;
        }
        json_array_foreach(gates, i, gate)
                n_true += is_condition_true(pod, strna(json_text(gate, "conditionType")));
        (void) snprintf(buffer, size, "%u/%zu", n_true, json_array_size(gates));
}

static const char *text_or_none(const char *text) {
        return text && text[0] ? text : "<none>";
}

/* A static pod is created when its node first sees it; without an API server only its start time is
 * known. */
static const char *creation_time(const json_t *pod) {
        const char *created = json_text(pod, "metadata", "creationTimestamp");

        return created ? created : json_text(pod, "status", "startTime");
}

void pod_summarize(const json_t *pod, uint64_t now_usec, PodSummary *ret) {
        PodSummaryBuilder sum = { .pod = pod,
                                  .reason = ret->status,
                                  .reason_size = sizeof(ret->status) };
        PodSummaryBuilder sidecars = { 0 };
        const char *reason = json_text(pod, "status", "reason");

        sum.n_total = (unsigned) json_array_size(json_at(pod, "spec", "containers"));
        set_reason(&sum, "",
                   reason && reason[0] ? reason : strna(json_text(pod, "status", "phase")));
        if (!summarize_init_containers(&sum, &sidecars) || is_condition_true(pod, "Initialized")) {
                sum.restarts = sidecars.restarts;
                sum.last_restart = sidecars.last_restart;
                summarize_containers(&sum);
        }
        summarize_deletion(&sum);

        ret->namespace = strna(json_text(pod, "metadata", "namespace"));
        ret->name = strna(json_text(pod, "metadata", "name"));
        (void) snprintf(ret->ready, sizeof(ret->ready), "%u/%u", sum.n_ready, sum.n_total);
        write_restarts(&sum, now_usec, ret->restarts, sizeof(ret->restarts));
        format_age(ret->age, creation_time(pod), now_usec);
        ret->ip = text_or_none(json_text(pod, "status", "podIP"));
        ret->node = text_or_none(json_text(pod, "spec", "nodeName"));
        ret->nominated_node = text_or_none(json_text(pod, "status", "nominatedNodeName"));
        write_readiness_gates(pod, ret->readiness_gates, sizeof(ret->readiness_gates));
        ret->source = text_or_none(own_json_value(pod, OWN_KEY_SOURCE));
}
