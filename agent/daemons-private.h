/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the files of daemons.h share; nobody else includes this. */

#include "agent/daemons.h"
#include "agent/daemonset/history.h"
#include "agent/daemonset/plan.h"
#include "agent/supervise/staging.h"

/* A set as it was wished for last, and its history. */
typedef struct Daemon {
        char *uid;
        char *file;
        DaemonSet *set; /* NULL: of an earlier agent, and not seen since */
        DaemonHistory history;
        DaemonDecision decision;
        DaemonPlan plan;
        size_t n_current, n_updated, n_ready, n_available; /* pods */
        bool has_changed;    /* the set is another than when its template was noted */
        Staging *staging;    /* of 'pod', while an old one has to end first; or NULL */
        char *trouble;       /* why that could not begin, as it was logged */
        Pod *pod;            /* of the wanted revision, as it was made last; or NULL */
        bool is_foreign;     /* its pods were made by another selector; they go on as they are */
        bool is_deleted;     /* its pods were left; the file is on its way out */
        unsigned generation; /* of the wishes that named it last */
        struct Daemon *next;
} Daemon;

/* A pod as it is found when wishes begin. */
typedef struct SeenPod {
        const Pod *pod; /* the supervisor's, or an orphan's */
        bool is_ending;
        bool is_ready;
        bool is_orphan;
        uint64_t ready_since;
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
        uint64_t now;      /* realtime, while wishes are made */
        uint64_t again_at; /* of all sets, the earliest; 0: none */
        bool has_changed;  /* the sets are others than when overlaps were looked for */
        bool minds_peers;  /* some set asks for the company of others */
        bool has_failed;
        char **warnings;
        sd_event_source *due_source;
        sd_event_source *timer;
};

Daemon *daemons_find_uid(Daemons *daemons, const char *uid);
Daemon *daemons_find(Daemons *daemons, const char *namespace, const char *name);

/* One more, of nothing but a UID; or NULL. */
Daemon *daemons_add(Daemons *daemons, const char *uid);
void daemon_free(Daemon *daemon);
void daemons_schedule(Daemons *daemons);

/* Sees what pods there are, and counts those of each set. 0 or -ENOMEM. */
int daemons_look(Daemons *daemons);

/* daemons-store.c: <state>/daemonsets/<uid>. */
int daemon_store(const Daemons *daemons, const Daemon *daemon, Error *reterr);
void daemon_forget(const Daemons *daemons, const Daemon *daemon);

/* daemons-store.c: whether the set has the selector that its history has; one that has none gets
 * it. 1: it has; 0: it has another; -ENOMEM. */
int daemon_check_selector(const Daemons *daemons, Daemon *daemon, bool has_pods);

/* daemons-store.c: notes the template of the file as a revision and gives the one that is wanted,
 * in a pod that schema_done(&pod_template_schema) ends. */
int daemon_note_template(Daemons *daemons, Daemon *daemon);
int daemon_read_template(const Daemon *daemon, const char *hash, Pod *ret);
