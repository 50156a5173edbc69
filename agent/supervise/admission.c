/* SPDX-License-Identifier: Apache-2.0 */
/* Who is not let in is a pod that failed, not one that waits; but the kubelet forgets it then, and
 * we ask again when the node's labels or conditions are others. What runs is never asked. */

#include "agent/bundle/logs.h"
#include "agent/model/match.h"
#include "agent/pressure/sentence.h"
#include "agent/supervise/pod-internal.h"
#include "agent/supervise/tell.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/log.h"

#include <stdlib.h>

static bool tolerates(const PodSpec *spec, NodeCondition condition) {
        const Taint taint = { .key = (char *) (uintptr_t) node_conditions[condition].taint,
                              .effect = TAINT_NO_SCHEDULE };

        for (size_t i = 0; i < spec->tolerations.n; i++)
                if (toleration_tolerates(&spec->tolerations.items[i], &taint))
                        return true;
        return false;
}

/* What has run here before has shown that it can, be it before a reboot. Who was evicted has none
 * of its logs any more when it comes again. */
static bool has_run(const PodLife *life) {
        for (size_t i = 0; i < life->n_containers; i++)
                if (bundle_last_logged_attempt(life->context->bundle, life->pod,
                                               life->containers[i].spec->name) >= 0)
                        return true;
        return false;
}

/* The kubelet's rule: memory is kept from those that ask for none, the rest from all. */
static bool fits_conditions(const PodLife *life, unsigned set) {
        const PodSpec *spec = &life->pod->spec;

        if (set == 0 || spec->priority.value >= SYSTEM_CRITICAL_PRIORITY)
                return true;
        if (set == NODE_CONDITION_BIT(NODE_MEMORY_PRESSURE) &&
            (pod_qos_class(spec) != QOS_BEST_EFFORT || tolerates(spec, NODE_MEMORY_PRESSURE)))
                return true;
        return has_run(life);
}

static void reject_take(PodLife *life, const char *reason, char *message) {
        free(life->rejection_message);
        life->rejection = reason;
        life->rejection_message = message;
}

static void reject_for_node(PodLife *life) {
        if (!life->rejection || !streq(life->rejection, "NodeAffinity"))
                log_warning("Pod '%s' is not begun: this node does not match its nodeSelector or "
                            "node affinity",
                            life->description);
        reject_take(life, "NodeAffinity",
                    strdup("Pod was rejected: Predicate NodeAffinity failed: node(s) didn't match "
                           "Pod's node affinity/selector"));
}

static void reject_for_conditions(PodLife *life, unsigned set) {
        cleanup_free char *conditions = sentence_of_conditions(set);
        char *message;

        if (asprintf(&message, "Pod was rejected: The node had condition: %s.", strna(conditions)) <
            0)
                message = NULL;
        if (!streq_ptr(life->rejection_message, message)) {
                log_warning("Pod '%s' is not begun while the node has %s", life->description,
                            strna(conditions));
                event_tell(life, NULL, POD_EVENT_WARNING, "Evicted", "The node had condition: %s.",
                           strna(conditions));
        }
        /* An API server makes another in its place, and must not hear that this one runs after all.
         */
        if (pod_is_of_api(life->pod) && message)
                pod_life_fail(life, POD_EVENT_WARNING, "Evicted", message, USEC_PER_SEC);
        reject_take(life, "Evicted", message);
}

bool pod_life_is_admitted(PodLife *life) {
        const PodContext *context = life->context;
        unsigned set = context->conditions ? context->conditions->set : 0;

        if (context->node && !pod_matches_node(&life->pod->spec, context->node))
                reject_for_node(life);
        else if (!fits_conditions(life, set))
                reject_for_conditions(life, set);
        else
                reject_take(life, NULL, NULL);
        return !life->rejection && !pod_life_has_failed(life);
}
