/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pods/pod-admission.h"

#include "agent/bundle/logs.h"
#include "agent/model/containers.h"
#include "agent/model/match.h"
#include "agent/pods/event-recorder.h"
#include "common/cleanup.h"

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
static bool pod_has_run_before(const PodInstance *pod) {
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
        admission->rejection_reason = reason;
        admission->rejection_message = message;
}

static void reject_for_node_affinity(PodAdmission *admission, const PodInstance *pod) {
        if (!admission->rejection_reason || !streq(admission->rejection_reason, "NodeAffinity"))
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
        if (!streq_ptr(admission->rejection_message, message)) {
                log_warning("Pod '%s' is not started while the node has %s", pod->description,
                            strna(conditions));
                record_pod_event(pod, NULL, POD_EVENT_WARNING, "Evicted",
                                 "The node had condition: %s.", strna(conditions));
        }
        set_rejection_take(admission, "Evicted", message);
}

bool pod_admission_check(PodAdmission *admission, const PodInstance *pod) {
        const PodContext *context = pod->context;
        unsigned set = context->conditions ? context->conditions->set : 0;

        if (context->node && !pod_matches_node(&pod->pod->spec, context->node))
                reject_for_node_affinity(admission, pod);
        else if (!is_admitted_under_pressure(pod, set))
                reject_for_node_conditions(admission, pod, set);
        else
                set_rejection_take(admission, NULL, NULL);
        return !admission->rejection_reason;
}

void pod_admission_done(PodAdmission *admission) {
        set_rejection_take(admission, NULL, NULL);
}
