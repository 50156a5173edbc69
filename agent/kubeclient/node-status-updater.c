/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the server's Node equal to the local one. */

#include "agent/kubeclient/node-status-updater.h"

#include "agent/kubeclient/node-events.h"
#include "agent/kubeclient/node-object.h"
#include "agent/kubeclient/reflector.h"
#include "agent/kubeclient/request-back-off.h"
#include "agent/kubeclient/work-queue.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/dump.h"
#include "common/event-source.h"
#include "common/json-text.h"
#include "common/text.h"

/* A reflector watches the server's Node, a work queue writes it. The assumed state of the server's
 * object determines the request: if unknown, it is read; if absent, created; if present, patched if
 * it differs. A response that contradicts the assumption changes it. */

#define NODES      "/api/v1/nodes"
#define PATCH_TYPE "application/strategic-merge-patch+json"
#define KEY        "node"

enum {
        DEADLINE_SEC = 10,
        HEARTBEAT_JITTER_PERCENT = 4,
        RELIST_USEC = 1000 * 1000,
        CONFLICTS_MAX = 3, /* consecutive conflicts before an error is reported */
};

typedef enum NodeObjectState {
        NODE_UNKNOWN,
        NODE_ABSENT,
        NODE_PRESENT,
} NodeObjectState;

struct NodeStatusUpdater {
        NodeStatusUpdaterSpec spec;
        char *name;
        char *path, *status_path;
        KubeReflector *reflector;
        KubeWorkQueue *queue;
        sd_event_source *heartbeat;
        NodeObjectState state;
        NodeObjectState requested_state; /* the state for which the request in flight was built */
        unsigned n_deleted;              /* deletions, counted */
        unsigned requested_n_deleted;    /* when the request in flight was built */
        unsigned n_watched;              /* number of watch events */
        unsigned requested_n_watched;    /* the same when the request was built */
        unsigned n_conflicts;
        bool is_compared_again; /* the last response is being compared with the desired state */
        char *server_node;      /* NODE_PRESENT: the server's object */
        json_t *requested_node; /* that of the request in flight; NULL: it creates the Node */
        char *uid, *version;
        bool is_unschedulable;
        bool is_listing; /* a list is being read */
        bool is_listed;  /* it is contained in the list that is being read */
        bool is_heartbeat_due;
        bool omits_labels; /* labels were refused; the status is updated without them */
        char *last_error;  /* as last reported */
};

/* ---- the server's Node ---- */

static void report_node_error(NodeStatusUpdater *updater, const char *error, unsigned status) {
        if (streq_ptr(error, updater->last_error))
                return;
        (void) text_replace(&updater->last_error, error);
        if (updater->spec.on_error)
                updater->spec.on_error(error, status, updater->spec.userdata);
}

static void report_node_object(NodeStatusUpdater *updater, const NodeLabelsTaints *external) {
        if (updater->spec.on_node)
                updater->spec.on_node(external, external ? updater->uid : NULL,
                                      updater->spec.userdata);
}

static void set_node_state(NodeStatusUpdater *updater, NodeObjectState state) {
        updater->state = state;
        if (state == NODE_PRESENT)
                return;
        free(updater->server_node);
        free(updater->version);
        updater->server_node = updater->version = NULL;
        if (state == NODE_UNKNOWN || !updater->uid)
                return;
        free(updater->uid);
        updater->uid = NULL;
        report_node_object(updater, NULL);
}

/* 'node' is the content of the text. 1 if it has changed, 0, -EBADMSG, -ENOMEM. */
static int store_server_node(NodeStatusUpdater *updater, const char *json, const json_t *node) {
        cleanup_with(node_labels_taints_done) NodeLabelsTaints external = { 0 };
        cleanup_free char *uid = NULL, *version = NULL, *known = NULL;
        int r = node_object_parse(node, &external, &uid, &version);

        if (r < 0)
                return r;
        if (!streq(external.name, updater->name))
                return -EBADMSG;
        if (updater->state == NODE_PRESENT && streq_ptr(version, updater->version))
                return 0;
        known = strdup(json);
        if (!known)
                return -ENOMEM;
        free(updater->server_node);
        free(updater->uid);
        free(updater->version);
        updater->server_node = TAKE_PTR(known);
        updater->uid = TAKE_PTR(uid);
        updater->version = TAKE_PTR(version);
        updater->state = NODE_PRESENT;
        if (updater->spec.on_event)
                node_events_check_schedulable(&updater->is_unschedulable, node,
                                              updater->spec.on_event, updater->spec.userdata);
        report_node_object(updater, &external);
        return 1;
}

static void mark_node_dirty(NodeStatusUpdater *updater) {
        (void) kube_work_queue_add(updater->queue, KEY);
}

/* ---- requests ---- */

static void arm_node_heartbeat(NodeStatusUpdater *updater) {
        uint64_t wait = back_off_add_jitter(NODE_HEARTBEAT_SEC * USEC_PER_SEC,
                                            HEARTBEAT_JITTER_PERCENT, back_off_random());

        (void) event_timer_arm_at(updater->heartbeat, now_boottime_usec() + wait);
}

static int on_node_heartbeat(sd_event_source *source, uint64_t usec, void *userdata) {
        NodeStatusUpdater *updater = userdata;

        updater->is_heartbeat_due = true;
        updater->omits_labels = false;
        mark_node_dirty(updater);
        return 0;
}

/* The patch is computed from this copy, and the events of the request are found by comparison with
 * it. */
static int keep_requested_node(NodeStatusUpdater *updater) {
        json_decref(updater->requested_node);
        updater->requested_node =
                updater->state == NODE_PRESENT ? json_loads(updater->server_node, 0, NULL) : NULL;
        return updater->state == NODE_PRESENT && !updater->requested_node ? -ENOMEM : 0;
}

static int build_node_body(NodeStatusUpdater *updater, char **ret) {
        cleanup_with(node_status_done) NodeStatus status = { 0 };
        const NodeLabelsTaints *local;
        uint64_t now = now_realtime_usec();
        int r = keep_requested_node(updater);

        if (r < 0)
                return r;
        r = updater->spec.get_local_node(&local, &status, updater->spec.userdata);
        if (r < 0)
                return r;
        if (updater->state == NODE_PRESENT)
                return node_object_patch(updater->requested_node,
                                         updater->omits_labels ? NULL : local, &status, now,
                                         updater->is_heartbeat_due, ret);
        *ret = node_object_new(local, &status, now);
        return *ret ? 1 : -ENOMEM;
}

static void report_node_events(NodeStatusUpdater *updater, const json_t *node) {
        cleanup_json json_t *before = TAKE_PTR(updater->requested_node);

        if (updater->spec.on_event)
                node_events_compare(before, node, updater->spec.on_event, updater->spec.userdata);
}

static int build_node_request(const char *key, KubeRequestSpec *ret, void *userdata) {
        NodeStatusUpdater *updater = userdata;
        char *body = NULL;
        int r;

        *ret = (KubeRequestSpec){ .deadline_usec = DEADLINE_SEC * USEC_PER_SEC };
        updater->requested_state = updater->state;
        updater->requested_n_deleted = updater->n_deleted;
        updater->requested_n_watched = updater->n_watched;
        if (updater->state == NODE_UNKNOWN) {
                ret->method = "GET";
                ret->path = updater->path;
                return 1;
        }
        if (updater->state == NODE_ABSENT && !updater->spec.registers_node)
                return 0;
        r = build_node_body(updater, &body);
        if (r == 0)
                updater->is_compared_again = false; /* nothing differs */
        if (r <= 0)
                return r;
        ret->method = updater->state == NODE_PRESENT ? "PATCH" : "POST";
        ret->path = updater->state == NODE_PRESENT ? updater->status_path : NODES;
        ret->content_type = updater->state == NODE_PRESENT ? PATCH_TYPE : NULL;
        ret->body = body;
        ret->body_length = strlen(body);
        return 1;
}

static void free_node_request(KubeRequestSpec *call, void *userdata) {
        freep(&call->body);
}

static KubeWorkResult handle_node_error(NodeStatusUpdater *updater, const KubeResponse *response) {
        cleanup_free char *why = kube_response_describe_error(response);

        report_node_error(updater, why ? why : "no memory", response->error ? 0 : response->status);
        /* An admission policy may refuse the labels, so they are omitted until the next heartbeat.
         */
        if (response->error || updater->requested_state != NODE_PRESENT || updater->omits_labels ||
            (response->status != 403 && response->status != 422))
                return KUBE_WORK_RETRY_LATER;
        updater->omits_labels = true;
        return KUBE_WORK_RETRY_NOW;
}

/* Whether the watch has reported the object since the request was sent, in which case that report,
 * or the next one, is newer. */
static bool is_response_outdated(const NodeStatusUpdater *updater) {
        return updater->state == NODE_PRESENT && updater->requested_n_watched != updater->n_watched;
}

/* The response may contain changes by other writers to which the request does not react, and which
 * no watch event reports if the watch started later. This is done only once, because a server that
 * modifies what it receives, for example through a webhook, must not be sent the same patch
 * endlessly. */
static KubeWorkResult compare_node_again(NodeStatusUpdater *updater) {
        updater->is_compared_again = !updater->is_compared_again;
        return updater->is_compared_again ? KUBE_WORK_RETRY_NOW : KUBE_WORK_DONE;
}

static KubeWorkResult take_node_response(NodeStatusUpdater *updater, const KubeResponse *response) {
        NodeObjectState requested_state = updater->requested_state;
        cleanup_json json_t *node = NULL;

        if (updater->requested_n_deleted != updater->n_deleted) {
                set_node_state(updater,
                               NODE_UNKNOWN); /* the response may be older than the deletion */
                return KUBE_WORK_RETRY_NOW;
        }
        node = json_loads(response->body, 0, NULL);
        if (!is_response_outdated(updater) && store_server_node(updater, response->body, node) < 0)
                return KUBE_WORK_RETRY_LATER;
        if (!updater->omits_labels)
                report_node_error(updater, NULL, response->status);
        if (requested_state == NODE_UNKNOWN)
                return KUBE_WORK_RETRY_NOW; /* it may differ from the local Node */
        report_node_events(updater, node);
        updater->is_heartbeat_due = false;
        updater->n_conflicts = 0;
        arm_node_heartbeat(updater);
        return compare_node_again(updater);
}

static KubeWorkResult on_node_response(const char *key, const KubeResponse *response,
                                       void *userdata) {
        NodeStatusUpdater *updater = userdata;

        if (!response->error && (response->status == 200 || response->status == 201))
                return take_node_response(updater, response);
        if (!response->error && response->status == 404 &&
            updater->requested_state != NODE_ABSENT) {
                set_node_state(updater, NODE_ABSENT);
                return updater->spec.registers_node ? KUBE_WORK_RETRY_NOW : KUBE_WORK_DONE;
        }
        if (!response->error && response->status == 409) {
                set_node_state(updater, NODE_UNKNOWN);
                if (++updater->n_conflicts <= CONFLICTS_MAX)
                        return KUBE_WORK_RETRY_NOW;
        }
        return handle_node_error(updater, response);
}

/* ---- the watch ---- */

static bool parse_resource_version(const char *text, uint64_t *ret) {
        char *end;

        if (!text || *text < '0' || *text > '9')
                return false;
        errno = 0;
        *ret = strtoull(text, &end, 10);
        return errno == 0 && *end == '\0';
}

/* A response to a request of this node was newer. The content of a list is never outdated: after
 * etcd was restored, resource versions start again. */
static bool is_watch_event_outdated(const NodeStatusUpdater *updater, const json_t *node) {
        const json_t *metadata = json_object_get(node, "metadata");
        const char *version = json_text(metadata, "resourceVersion");
        uint64_t known, watched;

        return !updater->is_listing && updater->state == NODE_PRESENT &&
               parse_resource_version(updater->version, &known) &&
               parse_resource_version(version, &watched) && watched < known;
}

static void on_node_object(KubeWatchEvent change, const char *json, size_t length, void *userdata) {
        NodeStatusUpdater *updater = userdata;
        cleanup_json json_t *node = NULL;

        updater->is_listed = true;
        updater->n_watched++;
        if (change == KUBE_DELETED) {
                updater->n_deleted++;
                set_node_state(updater, NODE_ABSENT);
                mark_node_dirty(updater);
                return;
        }
        node = json_loads(json, 0, NULL);
        /* A newer response also contains this change, but was not compared with the desired
         * state. */
        if (is_watch_event_outdated(updater, node) || store_server_node(updater, json, node) > 0)
                mark_node_dirty(updater);
}

static void on_node_list_begin(void *userdata) {
        NodeStatusUpdater *updater = userdata;

        updater->is_listing = true;
        updater->is_listed = false;
}

static void on_node_list_end(bool is_complete, void *userdata) {
        NodeStatusUpdater *updater = userdata;

        updater->is_listing = false;
        if (!is_complete || updater->is_listed)
                return;
        /* The list may be older than a request of this node, so the Node is read to find out
         * whether it is gone. */
        set_node_state(updater, updater->state == NODE_PRESENT ? NODE_UNKNOWN : NODE_ABSENT);
        mark_node_dirty(updater);
}

static int start_node_reflector(sd_event *event, NodeStatusUpdater *updater) {
        KubeReflectorSpec spec = {
                .client = updater->spec.client,
                .path = NODES,
                .field_selector = { "metadata.name", updater->name },
                .on_object = on_node_object,
                .on_list_begin = on_node_list_begin,
                .on_list_end = on_node_list_end,
                .userdata = updater,
        };

        return kube_reflector_new(event, &spec, &updater->reflector);
}

static int start_node_queue(sd_event *event, NodeStatusUpdater *updater) {
        KubeWorkQueueSpec spec = {
                .client = updater->spec.client,
                .max_parallel = 1,
                .build_request = build_node_request,
                .free_request = free_node_request,
                .on_response = on_node_response,
                .userdata = updater,
        };

        return kube_work_queue_new(event, &spec, &updater->queue);
}

static int format_node_paths(NodeStatusUpdater *updater) {
        const char *name = updater->name;

        updater->path = text_format(NODES "/%s", name);
        updater->status_path = text_format(NODES "/%s/status", name);
        return updater->path && updater->status_path ? 0 : -ENOMEM;
}

int node_status_updater_new(sd_event *event, const NodeStatusUpdaterSpec *spec,
                            NodeStatusUpdater **ret) {
        cleanup_with(node_status_updater_freep) NodeStatusUpdater *updater =
                calloc(1, sizeof(*updater));
        int r;

        if (!updater)
                return -ENOMEM;
        updater->spec = *spec;
        updater->is_heartbeat_due = true; /* the Node may have the status of an earlier agent */
        updater->name = strdup(spec->name);
        r = updater->name ? format_node_paths(updater) : -ENOMEM;
        if (r < 0)
                return r;
        r = event_add_disabled_timer(event, &updater->heartbeat, CLOCK_BOOTTIME, USEC_PER_SEC,
                                     on_node_heartbeat, updater);
        if (r < 0)
                return r;
        (void) sd_event_source_set_description(updater->heartbeat, "node-heartbeat");
        r = start_node_queue(event, updater);
        if (r < 0)
                return r;
        r = start_node_reflector(event, updater);
        if (r < 0)
                return r;
        mark_node_dirty(updater);
        *ret = TAKE_PTR(updater);
        return 0;
}

NodeStatusUpdater *node_status_updater_free(NodeStatusUpdater *updater) {
        if (!updater)
                return NULL;
        kube_reflector_free(updater->reflector);
        kube_work_queue_free(updater->queue);
        sd_event_source_disable_unref(updater->heartbeat);
        free(updater->last_error);
        free(updater->server_node);
        json_decref(updater->requested_node);
        free(updater->uid);
        free(updater->version);
        free(updater->name);
        free(updater->path);
        free(updater->status_path);
        free(updater);
        return NULL;
}

void node_status_updater_trigger(NodeStatusUpdater *updater) {
        mark_node_dirty(updater);
}

void node_status_updater_resync(NodeStatusUpdater *updater) {
        set_node_state(updater, NODE_UNKNOWN);
        kube_reflector_relist(updater->reflector, RELIST_USEC);
        mark_node_dirty(updater);
}

void node_status_updater_dump(const NodeStatusUpdater *updater, FILE *out) {
        static const char *const states[] = {
                [NODE_UNKNOWN] = "unknown",
                [NODE_ABSENT] = "absent",
                [NODE_PRESENT] = "present",
        };

        dump_line(out, 1, "Node: %s, %s, uid %s, resourceVersion %s%s", updater->name,
                  states[updater->state], updater->uid ? updater->uid : "none",
                  updater->version ? updater->version : "none",
                  updater->omits_labels ? ", labels were refused" : "");
        if (updater->last_error)
                dump_line(out, 2, "last error: %s", updater->last_error);
        dump_timer(out, 2, "next status update", updater->heartbeat);
        kube_work_queue_dump(updater->queue, "Node", out);
        kube_reflector_dump(updater->reflector, out);
}
