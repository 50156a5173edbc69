/* SPDX-License-Identifier: Apache-2.0 */
/* Who is not let in is a pod that failed, not one that waits; but the kubelet forgets it then, and
 * we ask again when the node's labels or conditions are others. What runs is never asked. */

#include "agent/bundle/logs.h"
#include "agent/eviction/eviction-message.h"
#include "agent/model/match.h"
#include "agent/pods/event-recorder.h"
#include "agent/pods/pod-worker-private.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/log.h"

#include <stdlib.h>

static bool tolerates_condition(const PodSpec *spec, NodeCondition condition) {
        const Taint taint = { .key = (char *) (uintptr_t) node_conditions[condition].taint,
                              .effect = TAINT_NO_SCHEDULE };

        for (size_t i = 0; i < spec->tolerations.n; i++)
                if (toleration_tolerates(&spec->tolerations.items[i], &taint))
                        return true;
        return false;
}

/* What has run here before has shown that it can, be it before a reboot. Who was evicted has none
 * of its logs any more when it comes again. */
static bool pod_has_run_before(const PodWorker *worker) {
        for (size_t i = 0; i < worker->n_containers; i++)
                if (bundle_last_logged_attempt(worker->context->bundle, worker->pod,
                                               worker->containers[i].spec->name) >= 0)
                        return true;
        return false;
}

/* The kubelet's rule: memory is kept from those that ask for none, the rest from all. */
static bool fits_node_conditions(const PodWorker *worker, unsigned set) {
        const PodSpec *spec = &worker->pod->spec;

        if (set == 0 || spec->priority.value >= SYSTEM_CRITICAL_PRIORITY)
                return true;
        if (set == NODE_CONDITION_BIT(NODE_MEMORY_PRESSURE) &&
            (pod_qos_class(spec) != QOS_BEST_EFFORT ||
             tolerates_condition(spec, NODE_MEMORY_PRESSURE)))
                return true;
        return pod_has_run_before(worker);
}

static void set_rejection_take(PodWorker *worker, const char *reason, char *message) {
        free(worker->rejection_message);
        worker->rejection_reason = reason;
        worker->rejection_message = message;
}

static void reject_for_node_affinity(PodWorker *worker) {
        if (!worker->rejection_reason || !streq(worker->rejection_reason, "NodeAffinity"))
                log_warning("Pod '%s' is not begun: this node does not match its nodeSelector or "
                            "node affinity",
                            worker->description);
        set_rejection_take(
                worker, "NodeAffinity",
                strdup("Pod was rejected: Predicate NodeAffinity failed: node(s) didn't match "
                       "Pod's node affinity/selector"));
}

static void reject_for_node_conditions(PodWorker *worker, unsigned set) {
        cleanup_free char *conditions = format_condition_list(set);
        char *message;

        if (asprintf(&message, "Pod was rejected: The node had condition: %s.", strna(conditions)) <
            0)
                message = NULL;
        if (!streq_ptr(worker->rejection_message, message)) {
                log_warning("Pod '%s' is not begun while the node has %s", worker->description,
                            strna(conditions));
                record_pod_event(worker, NULL, POD_EVENT_WARNING, "Evicted",
                                 "The node had condition: %s.", strna(conditions));
        }
        /* An API server makes another in its place, and must not hear that this one runs after all.
         */
        if (pod_is_of_api(worker->pod) && message)
                pod_worker_fail(worker, POD_EVENT_WARNING, "Evicted", message, USEC_PER_SEC);
        set_rejection_take(worker, "Evicted", message);
}

bool pod_worker_is_admitted(PodWorker *worker) {
        const PodContext *context = worker->context;
        unsigned set = context->conditions ? context->conditions->set : 0;

        if (context->node && !pod_matches_node(&worker->pod->spec, context->node))
                reject_for_node_affinity(worker);
        else if (!fits_node_conditions(worker, set))
                reject_for_node_conditions(worker, set);
        else
                set_rejection_take(worker, NULL, NULL);
        return !worker->rejection_reason && !pod_worker_has_failed(worker);
}
