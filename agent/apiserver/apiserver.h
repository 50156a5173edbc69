/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The API server's part in this node, where there is one: the pods that it has bound here are
 * wished for, and what becomes of all pods is told there. Optional in every sense: nothing on the
 * way of a container waits for it, and what is not reached is no order to stop anything. */

#include <stdio.h>
#include "agent/image/image-store.h"
#include "agent/manifest/manifest.h"
#include "agent/model/desired-pods.h"
#include "agent/model/node-status.h"
#include "agent/model/node.h"
#include "agent/model/object.h"
#include "agent/model/service.h"
#include "agent/model/token.h"
#include "agent/pods/pod-manager.h"

typedef struct ApiServerSync ApiServerSync;

/* What the server is told of this machine. */
typedef struct NodeStatusInputs {
        const NodeLabelsTaints
                *local; /* what it says of itself; may change, see apiserver_node_changed() */
        const NodeConditions *conditions; /* likewise */
        const EvictionPolicy *eviction;
        const char *hostname;
        const char *address; /* NULL: none */
        unsigned n_cpus;
        int64_t memory;  /* bytes */
        int64_t storage; /* likewise, where pods write to */
        ImageStore *images;
        const StringMap *runtimes; /* by their handlers, beside the one that has no name */
} NodeStatusInputs;

/* Everything is borrowed and outlives the Cluster. */
typedef struct ApiServerConfig {
        sd_event *event;
        const char *kubeconfig;           /* the file; it need not be there yet */
        const char *bootstrap_kubeconfig; /* to get it with; NULL: none */
        const char *node_name;
        const char *state_dir;
        const char *run_dir;
        PodManager *pod_manager;
        DaemonSetsBy daemonsets_by;
        NodeStatusInputs node_inputs;
        void (*on_recompute_due)(void *userdata); /* of the desired pods */
        /* What others have put onto the Node: labels and taints, and no more than these. It may be
         * the same as before. */
        void (*on_node)(const NodeLabelsTaints *external, void *userdata);
        /* apiserver_last_error() or apiserver_accepts_events() may be another. */
        void (*on_state_changed)(void *userdata);
        void *userdata;
} ApiServerConfig;

int apiserver_new(const ApiServerConfig *config, ApiServerSync **ret);
ApiServerSync *apiserver_free(ApiServerSync *api);
DEFINE_CLEANUP(ApiServerSync *, apiserver_free)

/* What an earlier agent had from the API server is desired until the server, once reached, says
 * otherwise. 0 or -ENOMEM. 'userdata' is the ApiServerSync. */
int apiserver_restore_pod(const Pod *desired, void *userdata);
int apiserver_restore_daemonset(const DaemonSet *set, void *userdata);

/* After the first wishes. A second later, or as soon as it is hastened, when the loop has nothing
 * else to do, the kubeconfig is read and the server asked. What is wrong is said in the log and in
 * apiserver_last_error(); nothing waits for it. */
void apiserver_start(ApiServerSync *api);

/* Nobody's first process is on its way: a container runs, or none is wanted. May be said again. */
void apiserver_start_now(ApiServerSync *api);

/* The kubeconfig, or what it names, may be another. */
void apiserver_reload_kubeconfig(ApiServerSync *api);

/* Adds the pods that the server has bound to this node, after those of all other sources, which
 * keep their names. 0, or -ENOMEM: then pods may be missing. 'userdata' is the ApiServerSync. */
int apiserver_add_desired_pods(DesiredPods *desired, void *userdata);

/* After that: why a pod that the server does not want is stopped, which the caller frees; NULL: the
 * server did not say so. 'userdata' is the ApiServerSync. */
char *apiserver_explain_stop(const PodSource *source, const Pod *local_pod, void *userdata);

/* An object that a pod of the server's refers to, or NULL; and whether it is not known yet if there
 * is one. For an ObjectLookup, whose userdata is the ApiServerSync. */
const DataObject *apiserver_find_object(ObjectKind kind, const char *namespace, const char *name,
                                        void *userdata);
bool apiserver_is_object_pending(ObjectKind kind, const char *namespace, const char *name,
                                 void *userdata);

/* For a TokenLookup, whose userdata is the Cluster. */
int apiserver_find_token(const Pod *pod, const TokenProjection *projection, const char **ret_token,
                         Error *reterr, void *userdata);

/* For a ServiceLookup, likewise: the services of the pod's namespace, and the server's own. */
int apiserver_add_service_variables(const Pod *pod, char ***env, Error *reterr, void *userdata);

/* Adds the DaemonSets that this node has to evaluate. 0 or -ENOMEM. 'userdata' is the
 * ApiServerSync. */
int apiserver_add_daemonsets(DesiredDaemonSets *sets, void *userdata);

/* All that is here is known, so that a mirror of what is not may go. */
void apiserver_set_synced(ApiServerSync *api);

/* Labels, taints, images or conditions of this node may be others. */
void apiserver_node_changed(ApiServerSync *api);

/* The machine goes down, and its pods are being stopped; or does not after all. Pods of the
 * server's are not told to have failed of it: they begin again at the next boot. */
void apiserver_set_shutting_down(ApiServerSync *api, bool is_shutting_down);

/* A v1.Event that happened here, once or once more; lost while nobody takes any. */
void apiserver_record_event(ApiServerSync *api, const char *json);
bool apiserver_accepts_events(const ApiServerSync *api);

/* A pod's status may be another; it is new or gone. */
void apiserver_on_pod(ApiServerSync *api, const Pod *local_pod, bool is_gone);

/* Why the server is not reached, or what it refuses: the first of all sentences; or NULL. */
void apiserver_dump(const ApiServerSync *api, FILE *out);
const char *apiserver_last_error(const ApiServerSync *api);

/* How this node stands with the server. 'ret_refused' is what 'ret' says of that, which the caller
 * frees. */
void apiserver_connection_status(const ApiServerSync *api, NodeApiServerConnection *ret,
                                 char **ret_refused);
