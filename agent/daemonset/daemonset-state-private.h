/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The struct that daemonset-state.c and daemonset-sync.c share; no other file includes this. */

#include "agent/daemonset/claimed-pods.h"
#include "agent/daemonset/daemonset-state.h"
#include "agent/daemonset/rules/failed-pods-back-off.h"
#include "agent/daemonset/rules/history.h"
#include "agent/daemonset/rules/rolling-update.h"

/* How the pin reason of an automatic rollback starts. */
#define ROLLED_BACK_PREFIX "Rolled back: "

/* Times are from the steady clock. */
struct DaemonSetState {
        char *uid;
        PodSource source;
        DaemonSet *set;      /* as it was desired last; NULL: only its pods remain */
        unsigned generation; /* of the pass in which it was desired last */
        bool is_removed;     /* its source does not contain it any more; its pods are stopped */
        bool has_changed;    /* the set or its source, since the history was updated */
        DaemonSetHistory history;
        DaemonSetDecision decision;
        DaemonSetPlan plan;
        FailedPodsBackOff back_off; /* of failed pods */
        DaemonSetPodCounts counts;
        PodReadyTime current_ready; /* of the pod of the desired revision */

        Pod *pod;                   /* of the desired revision, as it was made last; or NULL */
        Preflight *preflight;       /* of 'pod', while an old pod must terminate first; or NULL */
        char *last_error;           /* why 'pod' could not start, as it was logged; or NULL */
        bool is_refused;            /* 'pod' may not be created; pods that exist are kept */
        DaemonSetRefusal refusal;   /* then: why */
        bool is_create_pending;     /* 'pod' is desired, but its pod worker does not exist yet */
        bool has_selector_mismatch; /* the selector has changed since its pods were made; they
                                     * keep running as they are */
};

/* The pod must be made again. */
void daemonset_state_forget_pod(DaemonSetState *state);
void daemonset_state_forget_preflight(DaemonSetState *state);

/* The template of a revision, in a pod that schema_done(&pod_template_schema) ends. 0, -ENOENT or
 * -errno. */
int daemonset_state_read_template(const DaemonSetState *state, const char *hash, Pod *ret);
