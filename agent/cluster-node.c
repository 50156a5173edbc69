/* SPDX-License-Identifier: Apache-2.0 */
/* This node as the API server sees it: its Node, its Lease, and the events of its pods. */

#include "agent/cluster-private.h"

#include "common/cleanup.h"
#include "common/log.h"

static int describe(const NodeFacts **ret_own, NodeStatus *ret_status, void *userdata) {
        Cluster *cluster = userdata;

        *ret_own = cluster->config.machine.own;
        return cluster_describe_machine(cluster, ret_status);
}

/* ---- what the server says ---- */

/* One that is gone says nothing of what others want of the next. */
static void on_node(const NodeFacts *others, const char *uid, void *userdata) {
        Cluster *cluster = userdata;
        bool is_news = !streq_ptr(cluster->node_uid, uid);

        if (others)
                cluster->config.on_node(others, cluster->config.userdata);
        if (!is_news)
                return;
        free(cluster->node_uid);
        cluster->node_uid = uid ? strdup(uid) : NULL;
        if (kube_lease_set_node(cluster->lease, uid) < 0)
                log_error("Out of memory, the Lease of the node is not renewed");
        if (uid)
                log_info("The API server knows this node");
        cluster_tell_all_pods(cluster); /* mirrors belong to the Node */
}

static void on_node_trouble(const char *error, unsigned status, void *userdata) {
        cluster_note_refusal(userdata, CONCERN_NODE, error, status);
        if (!cluster_is_away(userdata, error, status) && error)
                log_warning("The Node cannot be kept at the API server: %s", error);
}

static void on_lease_trouble(const char *error, unsigned status, void *userdata) {
        cluster_note_refusal(userdata, CONCERN_LEASE, error, status);
        if (!cluster_is_away(userdata, error, status) && error)
                log_warning("The Lease of this node cannot be renewed: %s", error);
}

/* Nothing that was listed before is sure any more. */
static void on_history_lost(void *userdata) {
        Cluster *cluster = userdata;

        log_warning("The API server has forgotten what it said before; all is listed anew");
        node_keeper_refresh(cluster->node);
        kube_reflector_relist(cluster->reflector, 0);
}

int cluster_keep_node(Cluster *cluster) {
        sd_event *event = cluster->config.event;
        int r = kube_lease_new(event,
                               &(KubeLeaseSpec){ .client = cluster->client,
                                                 .node_name = cluster->config.node_name,
                                                 .on_trouble = on_lease_trouble,
                                                 .on_history_lost = on_history_lost,
                                                 .userdata = cluster },
                               &cluster->lease);

        if (r >= 0)
                r = event_writer_new(event, &(EventWriterSpec){ .client = cluster->client },
                                     &cluster->events);
        if (r < 0)
                return r;
        return node_keeper_new(event,
                               &(NodeKeeperSpec){ .client = cluster->client,
                                                  .name = cluster->config.node_name,
                                                  .registers = true,
                                                  .describe = describe,
                                                  .on_node = on_node,
                                                  .on_trouble = on_node_trouble,
                                                  .userdata = cluster },
                               &cluster->node);
}

void cluster_forget_node(Cluster *cluster) {
        node_keeper_free(cluster->node);
        kube_lease_free(cluster->lease);
        event_writer_free(cluster->events);
}

void cluster_node_changed(Cluster *cluster) {
        if (cluster->node)
                node_keeper_touch(cluster->node);
}

void cluster_tell_event(Cluster *cluster, const char *json) {
        cleanup_free char *renamed = cluster_rename_event(cluster, json);

        if (cluster->events)
                (void) event_writer_tell(cluster->events, renamed ? renamed : json);
}

bool cluster_takes_events(const Cluster *cluster) {
        return cluster->events;
}
