/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pods/pod-admission.h"

#include "agent/bundle/logs.h"
#include "agent/bundle/security.h"
#include "agent/model/containers.h"
#include "agent/model/match.h"
#include "agent/model/total-resources.h"
#include "agent/pods/event-recorder.h"
#include "agent/pods/host-ports.h"
#include "common/cleanup.h"
#include "common/clock.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LABELS_WAIT_USEC (5 * USEC_PER_SEC)

static const char rejected_prefix[] = "Pod was rejected: ";

static const ResourceType fit_order[] = { RESOURCE_CPU, RESOURCE_MEMORY, RESOURCE_EPHEMERAL_STORAGE,
                                          RESOURCE_HUGE_PAGES_1GI, RESOURCE_HUGE_PAGES_2MI };

static int64_t allocatable_amount(const NodeResources *node, ResourceType type) {
        const int64_t amounts[N_RESOURCE_TYPES] = {
                [RESOURCE_CPU] = node->cpu_milli,
                [RESOURCE_EPHEMERAL_STORAGE] = node->ephemeral_storage,
                [RESOURCE_HUGE_PAGES_1GI] = MAX(node->huge_pages_1gi, 0),
                [RESOURCE_HUGE_PAGES_2MI] = MAX(node->huge_pages_2mi, 0),
                [RESOURCE_MEMORY] = node->memory,
        };

        return amounts[type];
}

static bool tolerates_condition(const PodSpec *spec, NodeCondition condition) {
        const Taint taint = { .key = (char *) (uintptr_t) node_conditions[condition].taint,
                              .effect = TAINT_NO_SCHEDULE };

        for (size_t i = 0; i < spec->tolerations.n; i++)
                if (toleration_tolerates(&spec->tolerations.items[i], &taint))
                        return true;
        return false;
}

/* A pod that has run on this node, even before a reboot, is admitted again. The logs show it; an
 * eviction removes them. */
bool pod_has_run_before(const PodInstance *pod) {
        const Container *container;

        pod_foreach_container(container, &pod->pod->spec)
                if (bundle_last_logged_attempt(pod->context->bundle, pod->pod, container->name) >=
                    0)
                        return true;
        return false;
}

/* The kubelet's rule: memory pressure rejects BestEffort pods, other pressure rejects all. */
static bool is_admitted_under_pressure(const PodInstance *pod, unsigned set) {
        const PodSpec *spec = &pod->pod->spec;

        if (set == 0 || spec->priority.value >= SYSTEM_CRITICAL_PRIORITY)
                return true;
        if (set == NODE_CONDITION_BIT(NODE_MEMORY_PRESSURE) &&
            (pod_qos_class(spec) != QOS_BEST_EFFORT ||
             tolerates_condition(spec, NODE_MEMORY_PRESSURE)))
                return true;
        return pod_has_run_before(pod);
}

static void set_rejection_take(PodAdmission *admission, const char *reason, char *message) {
        free(admission->rejection_message);
        free(admission->rejection_reason);
        admission->rejection_reason = reason ? strdup(reason) : NULL;
        admission->rejection_message = message;
}

static void reject_for_node_affinity(PodAdmission *admission, const PodInstance *pod) {
        bool is_known = pod_is_of_api(pod->pod) || /* it fails, which is logged */
                        streq_ptr(admission->rejection_reason, "NodeAffinity");

        if (!is_known)
                log_warning("Pod '%s' is not started: this node does not match its nodeSelector or "
                            "node affinity",
                            pod->description);
        set_rejection_take(
                admission, "NodeAffinity",
                strdup("Pod was rejected: Predicate NodeAffinity failed: node(s) didn't match "
                       "Pod's node affinity/selector"));
}

static void reject_for_node_conditions(PodAdmission *admission, const PodInstance *pod,
                                       unsigned set) {
        cleanup_free char *conditions = format_condition_list(set);
        char *message;

        if (asprintf(&message, "Pod was rejected: The node had condition: %s.", strna(conditions)) <
            0)
                message = NULL;
        if (!streq_ptr(admission->rejection_message, message) && !pod_is_of_api(pod->pod)) {
                log_warning("Pod '%s' is not started while the node has %s", pod->description,
                            strna(conditions));
                record_pod_event(pod, NULL, POD_EVENT_WARNING, "Evicted",
                                 "The node had condition: %s.", strna(conditions));
        }
        set_rejection_take(admission, "Evicted", message);
}

/* ---- pods of an API server ---- */

/* The kubelet's words: the event has them, and the status after "Pod was rejected: ". */
static bool reject_api_pod(PodAdmission *admission, const char *reason, const char *format, ...)
        printf_like(3, 4);
static bool reject_api_pod(PodAdmission *admission, const char *reason, const char *format, ...) {
        cleanup_free char *message = NULL;
        char *whole;
        va_list ap;
        int r;

        va_start(ap, format);
        r = vasprintf(&message, format, ap);
        va_end(ap);
        if (r < 0)
                message = NULL;
        if (asprintf(&whole, "%s%s", rejected_prefix, strna(message)) < 0)
                whole = NULL;
        set_rejection_take(admission, reason, whole);
        return true;
}

static bool reject_for_os(PodAdmission *admission, const PodInstance *pod) {
        const PodOs *os = pod->pod->spec.os;
        const char *label = string_map_get(&pod->pod->metadata.labels, "kubernetes.io/os");

        if (label && !streq(label, os_names[OS_LINUX]))
                return reject_api_pod(admission, "PodOSSelectorNodeLabelDoesNotMatch",
                                      "Failed to admit pod as the `kubernetes.io/os` label doesn't "
                                      "match node label");
        if (os && os->name != OS_LINUX)
                return reject_api_pod(admission, "PodOSNotSupported",
                                      "Failed to admit pod as the OS field doesn't match node OS");
        return false;
}

static bool reject_for_sysctls(PodAdmission *admission, const PodInstance *pod) {
        cleanup_error Error error = ERROR_NULL;
        int r = pod_check_sysctls(pod->context->bundle, &pod->pod->spec, &error);

        return r < 0 &&
               reject_api_pod(admission, "SysctlForbidden", "%s", error_message(&error, r));
}

/* The reasons OutOfcpu, OutOfmemory, OutOfephemeral-storage, OutOfpods (maxPods, podsPerCore),
 * OutOfhugepages-… */
static bool reject_for_resource(PodAdmission *admission, const char *resource, int64_t requested,
                                int64_t used, int64_t capacity) {
        char reason[64];

        (void) snprintf(reason, sizeof(reason), "OutOf%s", resource);
        return reject_api_pod(admission, reason,
                              "Node didn't have enough resource: %s, requested: %" PRId64
                              ", used: %" PRId64 ", capacity: %" PRId64,
                              resource, requested, used, capacity);
}

/* In the order of the kubelet. Critical pods are admitted, where the kubelet would preempt others
 * for them. */
static bool reject_for_resources(PodAdmission *admission, const PodInstance *pod) {
        const PodContext *context = pod->context;
        const NodeResources *node = context->allocatable;
        const PodSpec *spec = &pod->pod->spec;
        NodeUsage usage;

        if (!node || spec->priority.value >= SYSTEM_CRITICAL_PRIORITY)
                return false;
        context->sum_usage(pod->pod, &usage, context->userdata);
        if (usage.n_pods + 1 > node->pods)
                return reject_for_resource(admission, "pods", 1, usage.n_pods, node->pods);
        for (size_t i = 0; i < N_ELEMENTS(fit_order); i++) {
                ResourceType type = fit_order[i];
                int64_t requested = pod_total_request(spec, type);
                int64_t capacity = allocatable_amount(node, type);

                if (requested > 0 && requested > capacity - usage.amounts[type])
                        return reject_for_resource(admission, resource_infos[type].name, requested,
                                                   usage.amounts[type], capacity);
        }
        return false;
}

/* A pod that has run here is not asked again: its resources were there. */
static bool reject_unfit_api_pod(PodAdmission *admission, const PodInstance *pod) {
        if (!pod_is_of_api(pod->pod) || pod_has_run_before(pod))
                return false;
        return reject_for_os(admission, pod) || reject_for_sysctls(admission, pod) ||
               reject_for_resources(admission, pod);
}

const char *pod_admission_event_message(const PodAdmission *admission) {
        const char *message = strna(admission->rejection_message);
        size_t n = strlen(rejected_prefix);

        return strncmp(message, rejected_prefix, n) == 0 ? message + n : message;
}

/* A label by which the scheduler has chosen this node may arrive after the pod. The kubelet reads
 * its Node again. */
static bool must_wait_for_labels(PodAdmission *admission, const PodInstance *pod) {
        uint64_t now = now_boottime_usec();

        if (!pod_is_of_api(pod->pod))
                return false;
        if (admission->mismatch_since == 0)
                admission->mismatch_since = now;
        return now - admission->mismatch_since < LABELS_WAIT_USEC;
}

static bool check_node_affinity(PodAdmission *admission, const PodInstance *pod) {
        const PodContext *context = pod->context;

        if (!context->node || pod_matches_node(&pod->pod->spec, context->node)) {
                admission->mismatch_since = 0;
                return true;
        }
        admission->is_waiting = must_wait_for_labels(admission, pod);
        if (!admission->is_waiting)
                reject_for_node_affinity(admission, pod);
        return false;
}

/* ---- ports of the host ---- */

static void reject_for_host_port(PodAdmission *admission, const PodInstance *pod,
                                 const HostPortHolder *holder) {
        static const char message[] = "Predicate NodePorts failed: node(s) didn't have free ports "
                                      "for the requested pod ports";
        bool is_known = pod_is_of_api(pod->pod) || /* it fails, which is logged */
                        streq_ptr(admission->rejection_reason, "NodePorts");

        if (!is_known) {
                log_warning("Pod '%s' is not started: %s: port %" PRId64
                            "/%s of the host is in use by pod '%s/%s'",
                            pod->description, holder->path, holder->port->host_port.value,
                            protocol_names[holder->port->protocol], holder->pod->metadata.namespace,
                            holder->pod->metadata.name);
                record_pod_event(pod, NULL, POD_EVENT_WARNING, "NodePorts",
                                 "%s; %s: port %" PRId64 "/%s is in use by pod %s/%s", message,
                                 holder->path, holder->port->host_port.value,
                                 protocol_names[holder->port->protocol],
                                 holder->pod->metadata.namespace, holder->pod->metadata.name);
        }
        (void) reject_api_pod(admission, "NodePorts", "%s", message);
}

/* A pod that has run here keeps its ports. A port of a pod that terminates is waited for. */
static bool check_host_ports(PodAdmission *admission, const PodInstance *pod) {
        const PodContext *context = pod->context;
        HostPortHolder holder;

        admission->awaits_port = false;
        if (!pod_has_host_ports(&pod->pod->spec) || pod_has_run_before(pod) ||
            !context->find_port_holder(pod->pod, &holder, context->userdata))
                return true;
        admission->awaits_port = true;
        if (!holder.is_terminating)
                reject_for_host_port(admission, pod, &holder);
        free(holder.path);
        return false;
}

bool pod_admission_check(PodAdmission *admission, const PodInstance *pod) {
        const PodContext *context = pod->context;
        unsigned set =
                context->conditions ? context->conditions->set & NODE_PRESSURE_CONDITIONS : 0;

        admission->is_waiting = false;
        if (reject_unfit_api_pod(admission, pod) || !check_node_affinity(admission, pod) ||
            !check_host_ports(admission, pod))
                return false;
        if (is_admitted_under_pressure(pod, set))
                set_rejection_take(admission, NULL, NULL);
        else
                reject_for_node_conditions(admission, pod, set);
        return !admission->rejection_reason;
}

void pod_admission_done(PodAdmission *admission) {
        set_rejection_take(admission, NULL, NULL);
}
