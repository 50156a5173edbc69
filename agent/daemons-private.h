/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the files of daemons.h share; nobody else includes this. */

#include "agent/daemons.h"
#include "agent/daemonset/back-off.h"
#include "agent/daemonset/history.h"
#include "agent/daemonset/plan.h"
#include "agent/supervise/staging.h"

/* A set as it was wished for last, and its history. Times are of the steady clock. */
typedef struct Daemon {
        char *uid;
        char *origin;
        DaemonSet *set; /* NULL: of an earlier agent, and not seen since */
        DaemonHistory history;
        DaemonDecision decision;
        DaemonPlan plan;
        DaemonBackOff back_off;                            /* of pods that end by themselves */
        size_t n_current, n_updated, n_ready, n_available; /* pods */
        uint64_t ready_stamp, ready_since; /* of the wanted revision's pod: realtime, and when that
                                              was; a clock that is set does not move the latter */
        bool has_changed;                  /* the set is another than when its template was noted */
        Staging *staging;    /* of 'pod', while an old one has to end first; or NULL */
        char *trouble;       /* why that could not begin, as it was logged */
        Pod *pod;            /* of the wanted revision, as it was made last; or NULL */
        bool awaits_pod;     /* 'pod' was wished for and has no life yet */
        bool is_foreign;     /* its pods were made by another selector; they go on as they are */
        unsigned generation; /* of the wishes that named it last */
        struct Daemon *next;
} Daemon;

/* A pod as it is found when wishes begin. */
typedef struct SeenPod {
        const Pod *pod; /* the supervisor's, or an orphan's */
        bool is_syncing;
        bool is_ending; /* one that an API server has bound here is about to, if we place any */
        bool is_of_api;
        bool is_ready;
        bool is_orphan;
        bool waits_for_node; /* evicted: it comes back by itself */
        PodPhase phase;
        uint64_t ready_stamp; /* realtime */
        uint64_t start_time;
} SeenPod;

struct Daemons {
        DaemonsConfig config;
        Daemon *list;
        Pod **orphans;
        size_t n_orphans;
        unsigned generation;
        SeenPod *seen;
        size_t n_seen;
        const Pod **peers; /* of all that is seen */
        uint64_t begun;    /* when the agent began; of the steady clock, as are: */
        uint64_t now;      /* while wishes are made */
        uint64_t again_at; /* of all sets, the earliest; 0: none */
        bool has_changed;  /* the sets are others than when overlaps were looked for */
        bool has_unnamed;  /* some set is there only for its pods */
        bool minds_peers;  /* some set asks for the company of others */
        bool has_failed;
        char **warnings;
        sd_event_source *due_source;
        sd_event_source *timer;
};

Daemon *daemons_find_uid(Daemons *daemons, const char *uid);
Daemon *daemons_find(Daemons *daemons, const char *namespace, const char *name);

/* How the reason of a pin begins where nobody asked for it. */
#define ROLLED_BACK "Rolled back: "

/* One more, of nothing but a UID; or NULL. */
Daemon *daemons_add(Daemons *daemons, const char *uid);
void daemon_free(Daemon *daemon);

/* It was wished for last time; else it is there only because pods of it are. */
bool daemon_is_named(const Daemons *daemons, const Daemon *daemon);

/* Its pod has to be made anew. */
void daemon_forget_pod(Daemon *daemon);
void daemon_forget_staging(Daemon *daemon);

/* Wishes are due, at once or at a time of the steady clock; 0: never. */
void daemons_schedule(Daemons *daemons);
void daemons_look_again_at(Daemons *daemons, uint64_t when);

/* ---- daemons-pods.c: what pods there are, and whose ---- */

extern const char revision_hash_label[];

/* The pods of a set. */
typedef struct OwnPods {
        SeenPod **seen; /* of the Daemons */
        DaemonPod *pods;
        bool *keep;
        size_t n;
} OwnPods;

void own_pods_done(OwnPods *own);

/* 0 or -ENOMEM. */
int daemons_see(Daemons *daemons);
void daemons_forget_seen(Daemons *daemons);
int daemon_collect_pods(const Daemons *daemons, Daemon *daemon, OwnPods *ret);
void daemon_count_pods(const Daemons *daemons, Daemon *daemon, const OwnPods *own);
bool daemon_has_pods(const Daemons *daemons, const Daemon *daemon);

/* Sees what pods there are, and counts those of each set. 0 or -ENOMEM. */
int daemons_look(Daemons *daemons);

/* ---- daemons-orphans.c: pods that a set has left ---- */

bool daemons_has_orphan(const Daemons *daemons, const Pod *pod);
void daemons_drop_orphan(Daemons *daemons, const Pod *pod);
void daemons_want_orphans(Daemons *daemons);

/* ---- daemons-step.c: brings one set to where its plan is ---- */

/* 0 or -errno: then daemon_keep_pods() keeps what there is. */
int daemon_step(Daemons *daemons, Daemon *daemon);
int daemon_keep_pods(Daemons *daemons, const Daemon *daemon);

/* ---- daemons-tell.c: events, in the controller's words ---- */

void daemon_tell(const Daemons *daemons, const Daemon *daemon, PodEventKind kind,
                 const char *reason, const char *format, ...) printf_like(5, 6);

/* ---- daemons-store.c: <state>/daemonsets/<uid> ---- */

int daemon_store(const Daemons *daemons, const Daemon *daemon, Error *reterr);

/* The same where nobody waits to be told: it is logged. */
void daemon_store_or_say(const Daemons *daemons, const Daemon *daemon);
void daemon_forget(const Daemons *daemons, const Daemon *daemon);

/* Whether the set has the selector that its history has; one that has none gets it. 1: it has; 0:
 * it has another; -ENOMEM. */
int daemon_check_selector(const Daemons *daemons, Daemon *daemon, bool has_pods);

/* Notes what was wished for: the set, and its template as a revision. 0 or -ENOMEM. */
int daemon_note_set(const Daemons *daemons, Daemon *daemon);

/* The template of a revision, in a pod that schema_done(&pod_template_schema) ends. */
int daemon_read_template(const Daemon *daemon, const char *hash, Pod *ret);
