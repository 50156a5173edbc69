/* SPDX-License-Identifier: Apache-2.0 */

/* Overlap warnings; see the header. */

#include "agent/daemonset/rules/overlap.h"

#include "agent/model/match.h"
#include "common/strv.h"

static bool selects_pods_of(const DaemonSet *set, const DaemonSet *other) {
        return label_selector_matches(set->spec.selector, &other->spec.template.metadata.labels);
}

int daemonset_warn_overlap(const DaemonSetWithOrigin *a, const DaemonSetWithOrigin *b,
                           char ***warnings) {
        const ObjectMeta *left = &a->set->metadata, *right = &b->set->metadata;

        if (!streq(left->namespace, right->namespace) ||
            (!selects_pods_of(a->set, b->set) && !selects_pods_of(b->set, a->set)))
                return 0;
        return strv_appendf(warnings,
                            "%s: daemonset %s/%s and daemonset %s/%s of %s: one's selector matches "
                            "the pods of the other",
                            b->origin, right->namespace, right->name, left->namespace, left->name,
                            a->origin);
}
