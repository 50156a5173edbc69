/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The pods of this node and the API server: adds the bound pods to the desired ones, and reports
 * the pods of this node. It connects the pod watch, adoption, the terminated-pod cache and the
 * status writer. */

#include "agent/apiserver/pod-table.h"
#include "agent/apiserver/referenced-objects.h"
#include "agent/apiserver/service-account-tokens.h"
#include "agent/model/desired-pods.h"

#include <stdio.h>

typedef struct ApiServerPods ApiServerPods;

/* Borrowed. */
typedef struct ApiServerPodsSpec {
        sd_event *event;
        const char *node_name;
        const char *run_dir;
        PodManager *pod_manager;
        ApiServerCache *cache;
        ConnectionStatus *connection;
        ReferencedObjects *objects;
        ServiceAccountTokens *tokens;
        /* See RemotePodWatchSpec. */
        void (*on_unbound)(const Pod *pod, void *userdata);
        /* The server has listed the bound pods, or has refused to list them. Called for each
         * response. */
        void (*on_answered)(void *userdata);
        void (*on_recompute_due)(void *userdata);
        void *userdata;
} ApiServerPodsSpec;

int apiserver_pods_new(const ApiServerPodsSpec *spec, ApiServerPods **ret);
ApiServerPods *apiserver_pods_free(ApiServerPods *pods);
int apiserver_pods_start(ApiServerPods *pods, KubeClient *client); /* 0 or -errno */

/* See the functions of the same names in apiserver.h. */
int apiserver_pods_restore(ApiServerPods *pods, const Pod *desired);
int apiserver_pods_add_desired(ApiServerPods *pods, DesiredPods *desired);
char *apiserver_pods_explain_stop(const ApiServerPods *pods, const PodSource *source,
                                  const Pod *local_pod);
void apiserver_pods_on_pod(ApiServerPods *pods, const Pod *local_pod, bool is_gone);
void apiserver_pods_set_synced(ApiServerPods *pods);
void apiserver_pods_set_shutting_down(ApiServerPods *pods, bool is_shutting_down);

void apiserver_pods_set_node_uid(ApiServerPods *pods, const char *uid);

/* The pod of the DaemonSet that is bound to this node, or NULL. */
const Pod *apiserver_pods_controlled_pod(ApiServerPods *pods, const DaemonSet *set);

/* Deletes that pod at the server, with its grace period; 'why' is the reason. */
void apiserver_pods_retire_controlled(ApiServerPods *pods, const DaemonSet *set, const char *why);

/* See adopted_pod_rename_event() and pod_status_writer_print_refused(). */
char *apiserver_pods_rename_event(const ApiServerPods *pods, const char *json);
char *apiserver_pods_print_refused(const ApiServerPods *pods);

/* Prints bound pods, their watch and the status writer for `mainstay debug dump`. */
void apiserver_pods_dump(const ApiServerPods *pods, FILE *out);

/* The restored pods belong to another cluster: none of them is desired. To be called before the
 * start.
 */
void apiserver_pods_forget_bound(ApiServerPods *pods);
