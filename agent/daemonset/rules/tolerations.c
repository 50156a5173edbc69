/* SPDX-License-Identifier: Apache-2.0 */

/* Automatic tolerations; see the header. A daemon should run before a node is ready and while it is
 * under pressure. Only pods of the host network tolerate the taint network-unavailable, and only
 * critical pods of the old API versions tolerate out-of-disk. */

#include "agent/daemonset/rules/tolerations.h"

#include "agent/model/match.h"

static bool uses_host_network(const DaemonSet *set) {
        return set->spec.template.spec.host_network;
}

static bool is_legacy_critical_pod(const DaemonSet *set) {
        const Pod *template = &set->spec.template;
        const char *class_name = template->spec.priority_class_name;

        if (streq(set->api_version, "apps/v1"))
                return false;
        return (class_name && system_priority_class_value(class_name) != 0) ||
               string_map_get(&template->metadata.annotations,
                              "scheduler.alpha.kubernetes.io/critical-pod");
}

/* Structs of model/ own their strings, so these are not const, but they are never written to. */
static char keys[][40] = {
        "node.kubernetes.io/not-ready",           "node.kubernetes.io/unreachable",
        "node.kubernetes.io/disk-pressure",       "node.kubernetes.io/memory-pressure",
        "node.kubernetes.io/pid-pressure",        "node.kubernetes.io/unschedulable",
        "node.kubernetes.io/network-unavailable", "node.kubernetes.io/out-of-disk",
};

#define EXISTS(i, the_effect) \
        { .key = keys[i], .op = TOLERATION_EXISTS, .effect = (the_effect) }

static const struct {
        Toleration toleration;
        bool (*applies)(const DaemonSet *set); /* NULL: to all sets */
} automatic_tolerations[] = {
        { EXISTS(0, TAINT_NO_EXECUTE), NULL },
        { EXISTS(1, TAINT_NO_EXECUTE), NULL },
        { EXISTS(2, TAINT_NO_SCHEDULE), NULL },
        { EXISTS(3, TAINT_NO_SCHEDULE), NULL },
        { EXISTS(4, TAINT_NO_SCHEDULE), NULL },
        { EXISTS(5, TAINT_NO_SCHEDULE), NULL },
        { EXISTS(6, TAINT_NO_SCHEDULE), uses_host_network },
        { EXISTS(7, TAINT_NO_SCHEDULE), is_legacy_critical_pod },
};

const Toleration *daemonset_automatic_toleration(const DaemonSet *set, size_t i) {
        for (size_t row = 0; row < N_ELEMENTS(automatic_tolerations); row++)
                if ((!automatic_tolerations[row].applies ||
                     automatic_tolerations[row].applies(set)) &&
                    i-- == 0)
                        return &automatic_tolerations[row].toleration;
        return NULL;
}

static bool tolerates_longer(const Toleration *a, const Toleration *b) {
        if (!b->toleration_seconds.is_set)
                return false;
        return !a->toleration_seconds.is_set ||
               a->toleration_seconds.value > b->toleration_seconds.value;
}

const Toleration *daemonset_find_toleration(const DaemonSet *set, const Taint *taint) {
        const TolerationList *own = &set->spec.template.spec.tolerations;
        const Toleration *best = NULL, *toleration;

        for (size_t i = 0; (toleration = daemonset_automatic_toleration(set, i)); i++)
                if (toleration_tolerates(toleration, taint))
                        return toleration;
        for (size_t i = 0; i < own->n; i++)
                if (toleration_tolerates(&own->items[i], taint) &&
                    (!best || tolerates_longer(&own->items[i], best)))
                        best = &own->items[i];
        return best;
}
