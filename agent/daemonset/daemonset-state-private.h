/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The struct that daemonset-state.c and daemonset-sync.c share; no other file includes this. */

#include "agent/daemonset/claimed-pods.h"
#include "agent/daemonset/daemonset-state.h"
#include "agent/daemonset/rules/failed-pods-back-off.h"
#include "agent/daemonset/rules/history.h"
#include "agent/daemonset/rules/rolling-update.h"

/* The prefix of the pin reason of an automatic rollback. */
#define ROLLED_BACK_PREFIX "Rolled back: "

/* Times are from the steady clock. */
struct DaemonSetState {
        char *uid;
        PodSource source;
        DaemonSet *set;      /* the set as it was last desired; NULL: only its pods remain */
        unsigned generation; /* the last pass in which it was desired */
        bool is_removed;     /* the source no longer contains the set; its pods are stopped */
        bool has_changed;    /* the set or its source has changed since the history was updated */
        DaemonSetHistory history;
        DaemonSetDecision decision;
        DaemonSetPlan plan;
        FailedPodsBackOff back_off; /* back-off of failed pods */
        DaemonSetPodCounts counts;
        PodReadyTime current_ready; /* when the pod of the desired revision became ready */

        Pod *pod;                   /* the last pod made from the desired revision; or NULL */
        Preflight *preflight;       /* preflight of 'pod', while an old pod must terminate first; or
                                     * NULL */
        char *last_error;           /* the logged reason why 'pod' could not start; or NULL */
        bool is_refused;            /* 'pod' may not be created; existing pods are kept */
        DaemonSetRefusal refusal;   /* the reason, if 'is_refused' */
        bool is_create_pending;     /* 'pod' is desired, but has no pod worker yet */
        bool has_selector_mismatch; /* the selector has changed since the pods were created; they
                                     * keep running unchanged */
};

/* Forgets 'pod', which must then be created again. */
void daemonset_state_forget_pod(DaemonSetState *state);
void daemonset_state_forget_preflight(DaemonSetState *state);

/* Reads the template of a revision into a pod that is released with
 * schema_done(&pod_template_schema). 0, -ENOENT or -errno. */
int daemonset_state_read_template(const DaemonSetState *state, const char *hash, Pod *ret);
