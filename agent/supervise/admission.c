/* SPDX-License-Identifier: Apache-2.0 */
/* Who is not let in is a pod that failed, not one that waits; but the kubelet forgets it then, and
 * we ask again when the node's labels are others. What runs is never asked. */

#include "agent/model/match.h"
#include "agent/supervise/pod-internal.h"
#include "common/log.h"

bool pod_life_is_admitted(PodLife *life) {
        const NodeFacts *node = life->context->node;
        bool was_rejected = life->is_rejected;

        life->is_rejected = node && !pod_matches_node(&life->pod->spec, node);
        if (life->is_rejected && !was_rejected)
                log_warning("Pod '%s' is not begun: this node does not match its nodeSelector or "
                            "node affinity",
                            life->description);
        return !life->is_rejected;
}
