/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/kube/node-keeper.h"

#include "agent/kube/backoff.h"
#include "agent/kube/node-object.h"
#include "agent/kube/reflector.h"
#include "agent/kube/writer.h"
#include "common/cleanup.h"
#include "common/clock.h"

/* A reflector tells what is there, a writer brings it to what should be. What we believe of the
 * server's Node decides the request that is due: nothing is known, it is read; it is not there, it
 * is created; it is there, and it is patched where it says something else than we. An answer that
 * contradicts the belief changes it. */

#define NODES        "/api/v1/nodes"
#define PATCH_TYPE   "application/strategic-merge-patch+json"
#define KEY          "node"
#define FIELD_SELECT "fieldSelector=metadata.name%%3D"

enum {
        DEADLINE_SEC = 10,
        HEARTBEAT_JITTER_PERCENT = 4,
        RELIST_USEC = 1000 * 1000,
        CONFLICTS_MAX = 3, /* one after another, before they are trouble */
};

typedef enum Belief {
        NODE_UNKNOWN,
        NODE_ABSENT,
        NODE_PRESENT,
} Belief;

struct NodeKeeper {
        NodeKeeperSpec spec;
        char *name;
        char *path, *status_path, *query;
        KubeReflector *reflector;
        KubeWriter *writer;
        sd_event_source *heartbeat;
        Belief belief;
        Belief asked;        /* what the request that is under way was made by */
        unsigned n_gone;     /* how often it was deleted */
        unsigned asked_gone; /* likewise, before the request */
        unsigned n_heard;    /* how often the watch told of it */
        unsigned asked_at;   /* likewise, before the request */
        unsigned n_conflicts;
        char *known; /* NODE_PRESENT: as the server has it */
        char *uid, *version;
        bool is_listed;     /* the list that is under way has it */
        bool is_due;        /* the heartbeat */
        bool spares_labels; /* they were refused; the status must not wait for them */
        char *trouble;      /* that was told */
};

/* ---- what is there ---- */

static void tell_trouble(NodeKeeper *keeper, const char *error, unsigned status) {
        if (streq_ptr(error, keeper->trouble))
                return;
        free(keeper->trouble);
        keeper->trouble = error ? strdup(error) : NULL;
        if (keeper->spec.on_trouble)
                keeper->spec.on_trouble(error, status, keeper->spec.userdata);
}

static void tell_node(NodeKeeper *keeper, const NodeFacts *facts) {
        if (keeper->spec.on_node)
                keeper->spec.on_node(facts, facts ? keeper->uid : NULL, keeper->spec.userdata);
}

static void believe(NodeKeeper *keeper, Belief belief) {
        bool was_present = keeper->belief == NODE_PRESENT;

        keeper->belief = belief;
        if (belief == NODE_PRESENT)
                return;
        free(keeper->known);
        free(keeper->version);
        keeper->known = keeper->version = NULL;
        if (belief == NODE_UNKNOWN || !was_present)
                return;
        free(keeper->uid);
        keeper->uid = NULL;
        tell_node(keeper, NULL);
}

/* 1 where it is news, 0, -EBADMSG, -ENOMEM. */
static int learn(NodeKeeper *keeper, const char *json) {
        cleanup_with(node_facts_done) NodeFacts facts = { 0 };
        cleanup_free char *uid = NULL, *version = NULL, *known = NULL;
        int r = node_object_read(json, &facts, &uid, &version);

        if (r < 0)
                return r;
        if (!streq(facts.name, keeper->name))
                return -EBADMSG;
        if (keeper->belief == NODE_PRESENT && streq_ptr(version, keeper->version))
                return 0;
        known = strdup(json);
        if (!known)
                return -ENOMEM;
        free(keeper->known);
        free(keeper->uid);
        free(keeper->version);
        keeper->known = TAKE_PTR(known);
        keeper->uid = TAKE_PTR(uid);
        keeper->version = TAKE_PTR(version);
        keeper->belief = NODE_PRESENT;
        tell_node(keeper, &facts);
        return 1;
}

static void mark(NodeKeeper *keeper) {
        (void) kube_writer_mark(keeper->writer, KEY);
}

/* ---- what is to be written ---- */

static void arm_heartbeat(NodeKeeper *keeper) {
        uint64_t wait =
                jitter(NODE_HEARTBEAT_SEC * USEC_PER_SEC, HEARTBEAT_JITTER_PERCENT, chance_now());

        (void) sd_event_source_set_time(keeper->heartbeat, now_boottime_usec() + wait);
        (void) sd_event_source_set_enabled(keeper->heartbeat, SD_EVENT_ONESHOT);
}

static int on_heartbeat(sd_event_source *source, uint64_t usec, void *userdata) {
        NodeKeeper *keeper = userdata;

        keeper->is_due = true;
        keeper->spares_labels = false;
        mark(keeper);
        return 0;
}

static int make_body(NodeKeeper *keeper, char **ret) {
        cleanup_with(node_status_done) NodeStatus status = { 0 };
        const NodeFacts *facts;
        uint64_t now = now_realtime_usec();
        int r = keeper->spec.describe(&facts, &status, keeper->spec.userdata);

        if (r < 0)
                return r;
        if (keeper->belief == NODE_PRESENT)
                return node_object_patch(keeper->known, keeper->spares_labels ? NULL : facts,
                                         &status, now, keeper->is_due, ret);
        *ret = node_object_new(facts, &status, now);
        return *ret ? 1 : -ENOMEM;
}

static int make(const char *key, KubeCall *ret, void *userdata) {
        NodeKeeper *keeper = userdata;
        char *body = NULL;
        int r;

        *ret = (KubeCall){ .deadline_usec = DEADLINE_SEC * USEC_PER_SEC };
        keeper->asked = keeper->belief;
        keeper->asked_gone = keeper->n_gone;
        keeper->asked_at = keeper->n_heard;
        if (keeper->belief == NODE_UNKNOWN) {
                ret->method = "GET";
                ret->path = keeper->path;
                return 1;
        }
        if (keeper->belief == NODE_ABSENT && !keeper->spec.registers)
                return 0;
        r = make_body(keeper, &body);
        if (r <= 0)
                return r;
        ret->method = keeper->belief == NODE_PRESENT ? "PATCH" : "POST";
        ret->path = keeper->belief == NODE_PRESENT ? keeper->status_path : NODES;
        ret->content_type = keeper->belief == NODE_PRESENT ? PATCH_TYPE : NULL;
        ret->body = body;
        ret->body_length = strlen(body);
        return 1;
}

static void unmake(KubeCall *call, void *userdata) {
        freep(&call->body);
}

static KubeVerdict refused(NodeKeeper *keeper, const KubeAnswer *answer) {
        cleanup_free char *why = kube_answer_explain(answer);

        tell_trouble(keeper, why ? why : "no memory", answer->error ? 0 : answer->status);
        /* It may be the labels that somebody's policy does not take: tried without them, until the
         * next heartbeat. */
        if (answer->error || keeper->asked != NODE_PRESENT || keeper->spares_labels ||
            (answer->status != 403 && answer->status != 422))
                return KUBE_LATER;
        keeper->spares_labels = true;
        return KUBE_AGAIN;
}

/* What the watch told meanwhile is newer than an answer, or something newer is on its way there. */
static bool is_outdated(const NodeKeeper *keeper) {
        return keeper->belief == NODE_PRESENT && keeper->asked_at != keeper->n_heard;
}

static KubeVerdict on_answer(const char *key, const KubeAnswer *answer, void *userdata) {
        NodeKeeper *keeper = userdata;
        Belief asked = keeper->asked;

        if (!answer->error && (answer->status == 200 || answer->status == 201)) {
                if (keeper->asked_gone != keeper->n_gone) {
                        believe(keeper, NODE_UNKNOWN); /* the answer may be older than that */
                        return KUBE_AGAIN;
                }
                if (!is_outdated(keeper) && learn(keeper, answer->body) < 0)
                        return KUBE_LATER;
                if (!keeper->spares_labels)
                        tell_trouble(keeper, NULL, answer->status);
                if (asked == NODE_UNKNOWN)
                        return KUBE_AGAIN; /* it may say something else than we */
                keeper->is_due = false;
                keeper->n_conflicts = 0;
                arm_heartbeat(keeper);
                return KUBE_WRITTEN;
        }
        if (!answer->error && answer->status == 404 && asked != NODE_ABSENT) {
                believe(keeper, NODE_ABSENT);
                return keeper->spec.registers ? KUBE_AGAIN : KUBE_WRITTEN;
        }
        if (!answer->error && answer->status == 409) {
                believe(keeper, NODE_UNKNOWN);
                if (++keeper->n_conflicts <= CONFLICTS_MAX)
                        return KUBE_AGAIN;
        }
        return refused(keeper, answer);
}

/* ---- what others do ---- */

static void on_object(KubeChange change, const char *json, size_t length, void *userdata) {
        NodeKeeper *keeper = userdata;

        keeper->is_listed = true;
        keeper->n_heard++;
        if (change == KUBE_DELETED) {
                keeper->n_gone++;
                believe(keeper, NODE_ABSENT);
                mark(keeper);
        } else if (learn(keeper, json) > 0)
                mark(keeper);
}

static void on_list_begin(void *userdata) {
        ((NodeKeeper *) userdata)->is_listed = false;
}

static void on_list_end(bool is_complete, void *userdata) {
        NodeKeeper *keeper = userdata;

        if (!is_complete || keeper->is_listed)
                return;
        /* The list may be older than our own request: whether it is gone, a read tells. */
        believe(keeper, keeper->belief == NODE_PRESENT ? NODE_UNKNOWN : NODE_ABSENT);
        mark(keeper);
}

static int begin_watch(sd_event *event, NodeKeeper *keeper) {
        KubeReflectorSpec spec = {
                .client = keeper->spec.client,
                .path = NODES,
                .query = keeper->query,
                .on_object = on_object,
                .on_list_begin = on_list_begin,
                .on_list_end = on_list_end,
                .userdata = keeper,
        };

        return kube_reflector_new(event, &spec, &keeper->reflector);
}

static int begin_writes(sd_event *event, NodeKeeper *keeper) {
        KubeWriterSpec spec = {
                .client = keeper->spec.client,
                .parallel = 1,
                .make = make,
                .unmake = unmake,
                .on_answer = on_answer,
                .userdata = keeper,
        };

        return kube_writer_new(event, &spec, &keeper->writer);
}

static int print_paths(NodeKeeper *keeper) {
        const char *name = keeper->name;

        if (asprintf(&keeper->path, NODES "/%s", name) < 0)
                keeper->path = NULL;
        if (asprintf(&keeper->status_path, NODES "/%s/status", name) < 0)
                keeper->status_path = NULL;
        if (asprintf(&keeper->query, FIELD_SELECT "%s", name) < 0)
                keeper->query = NULL;
        return keeper->path && keeper->status_path && keeper->query ? 0 : -ENOMEM;
}

int node_keeper_new(sd_event *event, const NodeKeeperSpec *spec, NodeKeeper **ret) {
        cleanup_with(node_keeper_freep) NodeKeeper *keeper = calloc(1, sizeof(*keeper));
        int r;

        if (!keeper)
                return -ENOMEM;
        keeper->spec = *spec;
        keeper->is_due = true; /* whatever the Node says of who was here before */
        keeper->name = strdup(spec->name);
        r = keeper->name ? print_paths(keeper) : -ENOMEM;
        if (r >= 0)
                r = sd_event_add_time(event, &keeper->heartbeat, CLOCK_BOOTTIME, 0, USEC_PER_SEC,
                                      on_heartbeat, keeper);
        if (r < 0)
                return r;
        (void) sd_event_source_set_description(keeper->heartbeat, "node-heartbeat");
        (void) sd_event_source_set_enabled(keeper->heartbeat, SD_EVENT_OFF);
        r = begin_writes(event, keeper);
        if (r >= 0)
                r = begin_watch(event, keeper);
        if (r < 0)
                return r;
        mark(keeper);
        *ret = TAKE_PTR(keeper);
        return 0;
}

NodeKeeper *node_keeper_free(NodeKeeper *keeper) {
        if (!keeper)
                return NULL;
        kube_reflector_free(keeper->reflector);
        kube_writer_free(keeper->writer);
        sd_event_source_disable_unref(keeper->heartbeat);
        free(keeper->trouble);
        free(keeper->known);
        free(keeper->uid);
        free(keeper->version);
        free(keeper->name);
        free(keeper->path);
        free(keeper->status_path);
        free(keeper->query);
        free(keeper);
        return NULL;
}

void node_keeper_touch(NodeKeeper *keeper) {
        mark(keeper);
}

void node_keeper_refresh(NodeKeeper *keeper) {
        believe(keeper, NODE_UNKNOWN);
        kube_reflector_relist(keeper->reflector, RELIST_USEC);
        mark(keeper);
}

const char *node_keeper_uid(const NodeKeeper *keeper) {
        return keeper->uid;
}
