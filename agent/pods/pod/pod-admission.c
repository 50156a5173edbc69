/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pods/pod/pod-admission.h"

#include "agent/bundle/log-paths.h"
#include "agent/bundle/resolved-security.h"
#include "agent/model/containers.h"
#include "agent/model/match.h"
#include "agent/model/resource.h"
#include "agent/pods/pod/event-recorder.h"
#include "agent/pods/pod/host-ports.h"
#include "agent/pods/pod/pod-preemption.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/text.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LABELS_WAIT_USEC (5 * USEC_PER_SEC)

static const char rejected_prefix[] = "Pod was rejected: ";

static bool tolerates_condition(const PodSpec *spec, NodeCondition condition) {
        const Taint taint = { .key = (char *) (uintptr_t) node_conditions[condition].taint,
                              .effect = TAINT_NO_SCHEDULE };

        for (size_t i = 0; i < spec->tolerations.n; i++)
                if (toleration_tolerates(&spec->tolerations.items[i], &taint))
                        return true;
        return false;
}

/* A pod that has run on this node, even before a reboot, is admitted again. Its logs show that it
 * has run; an eviction removes them. */
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

        if (set == 0 || pod_is_critical(spec))
                return true;
        if (set == NODE_CONDITION_BIT(NODE_MEMORY_PRESSURE) &&
            (pod_qos_class(spec) != QOS_BEST_EFFORT ||
             tolerates_condition(spec, NODE_MEMORY_PRESSURE)))
                return true;
        return pod_has_run_before(pod);
}

static void set_rejection_take(PodAdmission *admission, const char *reason, char *message) {
        admission->is_rejection_new = !streq_ptr(admission->rejection_message, message);
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
        char *message =
                text_format("Pod was rejected: The node had condition: %s.", strna(conditions));

        set_rejection_take(admission, "Evicted", message);
        if (admission->is_rejection_new && !pod_is_of_api(pod->pod)) {
                log_warning("Pod '%s' is not started while the node has %s", pod->description,
                            strna(conditions));
                record_pod_event(pod, NULL, POD_EVENT_WARNING, "Evicted",
                                 "The node had condition: %s.", strna(conditions));
        }
}

/* ---- pods of an API server ---- */

/* The kubelet's wording, used in the event, and in the status after "Pod was rejected: ". */
static bool reject_api_pod(PodAdmission *admission, const char *reason, const char *format, ...)
        printf_like(3, 4);
static bool reject_api_pod(PodAdmission *admission, const char *reason, const char *format, ...) {
        cleanup_free char *message = NULL;
        va_list ap;

        va_start(ap, format);
        message = text_vformat(format, ap);
        va_end(ap);
        set_rejection_take(admission, reason, text_format("%s%s", rejected_prefix, strna(message)));
        return true;
}

const char *pod_admission_event_message(const PodAdmission *admission) {
        const char *message = strna(admission->rejection_message);
        size_t n = strlen(rejected_prefix);

        return strncmp(message, rejected_prefix, n) == 0 ? message + n : message;
}

/* The rejection is reported once. A pod that an API server has bound to this node fails, which is
 * logged. */
static void report_rejection(const PodAdmission *admission, const PodInstance *pod,
                             const char *cause, const char *outlook) {
        if (!admission->is_rejection_new || pod_is_of_api(pod->pod))
                return;
        log_warning("Pod '%s' is not started: %s%s", pod->description, cause, outlook);
        record_pod_event(pod, NULL, POD_EVENT_WARNING, strna(admission->rejection_reason), "%s",
                         pod_admission_event_message(admission));
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
 * OutOfhugepages-…, for the first insufficient amount. */
static bool reject_for_insufficient_resources(PodAdmission *admission, const NodeUsage *missing,
                                              const NodeUsage *requested, const NodeUsage *used,
                                              const NodeUsage *capacity) {
        unsigned amount = node_usage_first(missing);
        char reason[64];

        (void) snprintf(reason, sizeof(reason), "OutOf%s", node_amount_name(amount));
        return reject_api_pod(admission, reason,
                              "Node didn't have enough resource: %s, requested: %" PRId64
                              ", used: %" PRId64 ", capacity: %" PRId64,
                              node_amount_name(amount), requested->amounts[amount],
                              used->amounts[amount], capacity->amounts[amount]);
}

/* Stops other pods, and waits until they are gone; or rejects the pod if that would not help. */
static bool preempt_or_reject(PodAdmission *admission, const PodInstance *pod,
                              const NodeUsage *missing) {
        const PodContext *context = pod->context;
        cleanup_free char *text = NULL;
        NodeUsage unmet;
        int r = context->preempt(pod->pod, missing, &unmet, context->userdata);

        if (r >= 0) {
                admission->has_preempted = true;
                admission->awaits_release = context->is_preempting(context->userdata);
        }
        admission->is_waiting = r != -ENOSPC && !admission->awaits_release;
        if (r != -ENOSPC)
                return true;
        text = format_missing_resources(&unmet);
        return reject_api_pod(admission, "UnexpectedAdmissionError",
                              "Unexpected error while attempting to recover from admission "
                              "failure: preemption: error finding a set of pods to preempt: no set "
                              "of running pods found to reclaim resources: %s",
                              strna(text));
}

/* A critical pod waits until the pods that are being stopped for it, or for others, are gone. */
static bool reject_or_preempt_for_resources(PodAdmission *admission, const PodInstance *pod) {
        const PodContext *context = pod->context;
        NodeUsage capacity, used, missing;
        NodeUsage requested = node_usage_of_pod(&pod->pod->spec);

        if (!context->allocatable)
                return false;
        capacity = node_usage_capacity(context->allocatable);
        context->sum_usage(pod->pod, &used, context->userdata);
        if (node_usage_find_missing(&capacity, &used, &requested, &missing))
                return pod_is_critical(&pod->pod->spec)
                               ? preempt_or_reject(admission, pod, &missing)
                               : reject_for_insufficient_resources(admission, &missing, &requested,
                                                                   &used, &capacity);
        admission->awaits_release =
                pod_is_critical(&pod->pod->spec) && context->is_preempting(context->userdata);
        return admission->awaits_release;
}

/* A pod that has run here is not checked again, because it had its resources. */
static bool must_fit(const PodInstance *pod) {
        return pod_is_of_api(pod->pod) && !pod_has_run_before(pod);
}

/* Includes pods that this node has created from a DaemonSet: Pod Security relies on this check,
 * because it restricts pods for another operating system less. */
static bool reject_unsafe_pod(PodAdmission *admission, const PodInstance *pod) {
        if (pod->pod->metadata.source != OBJECT_SOURCE_APISERVER || pod_has_run_before(pod) ||
            (!reject_for_os(admission, pod) && !reject_for_sysctls(admission, pod)))
                return false;
        report_rejection(admission, pod, pod_admission_event_message(admission), "");
        return true;
}

static bool reject_unfit_api_pod(PodAdmission *admission, const PodInstance *pod) {
        return !pod_is_critical(&pod->pod->spec) && reject_or_preempt_for_resources(admission, pod);
}

/* This check is the last one, so that no pod is stopped for a pod that is rejected for another
 * reason. */
static bool reject_unfit_critical_pod(PodAdmission *admission, const PodInstance *pod) {
        return pod_is_critical(&pod->pod->spec) && reject_or_preempt_for_resources(admission, pod);
}

/* A label that made the scheduler choose this node may arrive after the pod. The kubelet reads its
 * Node again. */
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

/* ---- host ports ---- */

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

/* A pod that has run here keeps its ports. The pod waits for a port that a terminating pod holds. A
 * port that a pod of lower trust holds is taken from that pod, unless this pod is rejected because
 * of the node's conditions. */
static bool check_host_ports(PodAdmission *admission, const PodInstance *pod, unsigned set) {
        const PodContext *context = pod->context;
        HostPortHolder holder;

        if (!pod_has_host_ports(&pod->pod->spec) || pod_has_run_before(pod) ||
            !context->find_port_holder(pod->pod, &holder, context->userdata))
                return true;
        admission->awaits_release = true;
        if (holder.is_outranked && is_admitted_under_pressure(pod, set)) {
                context->displace_port_holders(pod->pod, context->userdata);
                set_rejection_take(admission, NULL, NULL);
        } else if (!holder.is_terminating)
                reject_for_host_port(admission, pod, &holder);
        free(holder.path);
        return false;
}

/* ---- devices ---- */

static void reject_for_devices(PodAdmission *admission, const PodInstance *pod,
                               const char *message) {
        (void) reject_api_pod(admission, "UnexpectedAdmissionError",
                              "Allocate failed due to %s, which is unexpected", message);
        admission->awaits_devices = !pod_is_of_api(pod->pod);
        report_rejection(admission, pod, message, "; it starts when they are available");
}

/* This comes last, because providers allocate devices. If device plugins answer later, the pod is
 * checked again then. Devices that pods of lower trust have are taken from them. */
static bool check_pod_devices(PodAdmission *admission, const PodInstance *pod) {
        const PodContext *context = pod->context;
        cleanup_error Error error = ERROR_NULL;
        int r;

        admission->awaits_devices = false;
        if (!context->devices || !pod_has_extended_resources(&pod->pod->spec))
                return true;
        r = device_manager_admit(context->devices, pod->pod, !pod_is_of_api(pod->pod), &error);
        if (r == -ENOSPC && context->displace_device_holders(pod->pod, context->userdata)) {
                admission->awaits_devices = true;
                set_rejection_take(admission, NULL, NULL);
        } else if (r < 0 && r != -EINPROGRESS)
                reject_for_devices(admission, pod, error_message(&error, r));
        return r >= 0;
}

bool pod_admission_check(PodAdmission *admission, const PodInstance *pod) {
        const PodContext *context = pod->context;
        bool is_new = must_fit(pod);
        unsigned set =
                context->conditions ? context->conditions->set & NODE_PRESSURE_CONDITIONS : 0;

        admission->is_waiting = admission->awaits_release = false;
        if (reject_unsafe_pod(admission, pod) || (is_new && reject_unfit_api_pod(admission, pod)) ||
            !check_node_affinity(admission, pod) || !check_host_ports(admission, pod, set) ||
            (is_new && reject_unfit_critical_pod(admission, pod)))
                return false;
        admission->has_preempted = false;
        if (!is_admitted_under_pressure(pod, set)) {
                reject_for_node_conditions(admission, pod, set);
                return false;
        }
        if (!check_pod_devices(admission, pod))
                return false;
        set_rejection_take(admission, NULL, NULL);
        return true;
}

void pod_admission_done(PodAdmission *admission) {
        set_rejection_take(admission, NULL, NULL);
}
