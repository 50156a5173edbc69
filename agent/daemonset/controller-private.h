/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the files of daemons.h share; nobody else includes this. */

#include "agent/daemonset/controller.h"
#include "agent/daemonset/rules/failed-pods-backoff.h"
#include "agent/daemonset/rules/history.h"
#include "agent/daemonset/rules/plan.h"
#include "agent/pods/preflight.h"

/* A set as it was wished for last, and its history. Times are of the steady clock. */
typedef struct DaemonSetState {
        char *uid;
        PodSource source;
        DaemonSet *set; /* NULL: of an earlier agent, and not seen since */
        DaemonSetHistory history;
        DaemonSetDecision decision;
        DaemonSetPlan plan;
        FailedPodsBackoff back_off;                        /* of pods that end by themselves */
        size_t n_current, n_updated, n_ready, n_available; /* pods */
        uint64_t ready_stamp, ready_since; /* of the wanted revision's pod: realtime, and when that
                                              was; a clock that is set does not move the latter */
        bool has_changed;                  /* the set is another than when its template was noted */
        Preflight *preflight;       /* of 'pod', while an old one has to end first; or NULL */
        char *last_error;           /* why that could not begin, as it was logged */
        Pod *pod;                   /* of the wanted revision, as it was made last; or NULL */
        bool is_create_pending;     /* 'pod' was wished for and has no life yet */
        bool has_selector_mismatch; /* its pods were made by another selector; they go on as they
                                       are */
        bool is_removed;            /* its source no longer contains it; its pods are stopped */
        unsigned generation;        /* of the sync that had it last */
        struct DaemonSetState *next;
} DaemonSetState;

/* A pod as it is found when wishes begin. */
typedef struct ObservedPod {
        const Pod *pod; /* the supervisor's, or an orphan's */
        bool is_syncing;
        bool is_terminating; /* one that an API server has bound here is about to, if we place any
                              */
        bool is_api_pod;
        bool is_ready;
        bool is_orphan;
        bool waits_for_node; /* evicted: it comes back by itself */
        PodPhase phase;
        uint64_t ready_stamp; /* realtime */
        uint64_t start_time;
} ObservedPod;

struct DaemonSetController {
        DaemonSetControllerConfig config;
        DaemonSetState *sets;
        Pod **orphans;
        size_t n_orphans;
        unsigned generation;
        ObservedPod *observed;
        size_t n_observed;
        const Pod **peers;      /* of all that is seen */
        uint64_t started_at;    /* when the agent began; of the steady clock, as are: */
        uint64_t now;           /* while wishes are made */
        uint64_t requeue_at;    /* of all sets, the earliest; 0: none */
        bool has_changed;       /* the sets are others than when overlaps were looked for */
        bool has_undesired;     /* some set is there only for its pods */
        bool has_peer_affinity; /* some set asks for the company of others */
        bool has_failed;
        DesiredPods *desired; /* while sets are synced */
        char **warnings;
        sd_event_source *timer;
};

DaemonSetState *daemonset_controller_find_uid(DaemonSetController *controller, const char *uid);
DaemonSetState *daemonset_controller_find(DaemonSetController *controller, const char *namespace,
                                          const char *name);

/* How the reason of a pin begins where nobody asked for it. */
#define ROLLED_BACK_PREFIX "Rolled back: "

/* One more, of nothing but a UID; or NULL. */
DaemonSetState *daemonset_controller_add(DaemonSetController *controller, const char *uid);
void daemonset_state_free(DaemonSetState *state);

/* It was wished for last time; else it is there only because pods of it are. */
bool daemonset_state_is_desired(const DaemonSetController *controller, const DaemonSetState *state);

/* Its pod has to be made anew. */
void daemonset_state_forget_pod(DaemonSetState *state);
void daemonset_state_forget_preflight(DaemonSetState *state);

/* Wishes are due, at once or at a time of the steady clock; 0: never. */
void daemonset_controller_schedule_sync(DaemonSetController *controller);
void daemonset_controller_requeue_at(DaemonSetController *controller, uint64_t when);

/* ---- daemons-pods.c: what pods there are, and whose ---- */

extern const char revision_hash_label[];

/* The pods of a set. */
typedef struct ClaimedPods {
        ObservedPod **observed; /* of the Daemons */
        DaemonSetPodState *pods;
        bool *keep;
        size_t n;
} ClaimedPods;

void claimed_pods_done(ClaimedPods *claimed);

/* 0 or -ENOMEM. */
int daemonset_controller_observe_pods(DaemonSetController *controller);
void daemonset_controller_clear_observed(DaemonSetController *controller);
int daemonset_state_claim_pods(const DaemonSetController *controller, DaemonSetState *state,
                               ClaimedPods *ret);
void daemonset_state_count_pods(const DaemonSetController *controller, DaemonSetState *state,
                                const ClaimedPods *claimed);
bool daemonset_state_has_pods(const DaemonSetController *controller, const DaemonSetState *state);

/* Sees what pods there are, and counts those of each set. 0 or -ENOMEM. */
int daemonset_controller_update_counts(DaemonSetController *controller);

/* ---- daemons-orphans.c: pods that a set has left ---- */

bool daemonset_controller_has_orphan(const DaemonSetController *controller, const Pod *pod);
void daemonset_controller_drop_orphan(DaemonSetController *controller, const Pod *pod);
void daemonset_controller_keep_orphans(DaemonSetController *controller);

/* ---- daemons-step.c: brings one set to where its plan is ---- */

/* 0 or -errno: then daemonset_state_keep_pods() keeps what there is. */
int daemonset_state_sync(DaemonSetController *controller, DaemonSetState *state);
int daemonset_state_keep_pods(DaemonSetController *controller, const DaemonSetState *state);

/* ---- daemons-tell.c: events, in the controller's words ---- */

void daemonset_state_record_event(const DaemonSetController *controller,
                                  const DaemonSetState *state, PodEventKind kind,
                                  const char *reason, const char *format, ...) printf_like(5, 6);

/* ---- daemons-store.c: <state>/daemonsets/<uid> ---- */

int daemonset_state_store(const DaemonSetController *controller, const DaemonSetState *state,
                          Error *reterr);

/* The same where nobody waits to be told: it is logged. */
void daemonset_state_store_or_log(const DaemonSetController *controller,
                                  const DaemonSetState *state);
void daemonset_state_remove_file(const DaemonSetController *controller,
                                 const DaemonSetState *state);

/* Whether the set has the selector that its history has; one that has none gets it. 1: it has; 0:
 * it has another; -ENOMEM. */
int daemonset_state_check_selector(const DaemonSetController *controller, DaemonSetState *state,
                                   bool has_pods);

/* Notes what was wished for: the set, and its template as a revision. 0 or -ENOMEM. */
int daemonset_state_update_history(const DaemonSetController *controller, DaemonSetState *state);

/* The template of a revision, in a pod that schema_done(&pod_template_schema) ends. */
int daemonset_state_read_template(const DaemonSetState *state, const char *hash, Pod *ret);
