/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Synchronizes this node with an API server, if there is one: the pods that the server has bound to
 * this node are added to the desired pods; pods, Node, Lease and events are reported. No container
 * waits for the server, and an unreachable server stops nothing. */

#include "agent/apiserver/collected-node-status.h"
#include "agent/daemonset/rules/rules.h"
#include "agent/kubeclient/kube-client.h"
#include "agent/model/config.h"
#include "agent/model/desired-pods.h"
#include "agent/model/node.h"
#include "agent/model/object.h"
#include "agent/model/service.h"
#include "agent/model/token.h"
#include "agent/model/volume-expansion.h"
#include "agent/pods/manager/pod-manager.h"
#include "agent/secrets/secret-storage.h"

#include <stdio.h>

typedef struct ApiServerSync ApiServerSync;

/* Everything is borrowed and outlives this module. */
typedef struct ApiServerConfig {
        sd_event *event;
        const char *kubeconfig;           /* a file, which may not exist yet */
        const char *bootstrap_kubeconfig; /* for TLS bootstrap; NULL: none */
        const char *certificate_dir;      /* of issued certificates; NULL: "<state>/pki" */
        bool rotates_embedded;        /* a certificate that the kubeconfig contains is replaced */
        bool has_serving_certificate; /* that of mainstay-api is requested */
        const char *node_name;
        const char *state_dir;
        const char *run_dir;
        SecretStorage *storage; /* encrypts the cache; its callback becomes that of this module */
        PodManager *pod_manager;
        DaemonSetsBy daemonsets_by;
        const SharedObjects *shared;       /* which of its objects are visible to pods of other
                                            * sources */
        char *const *daemonset_namespaces; /* as configured; NULL: not configured */
        const NodeLabelsTaints
                *node; /* the labels and taints that apply to its pods, including external ones */
        NodeStatusInputs node_inputs;             /* with the CSI manager, if there is one */
        void (*on_recompute_due)(void *userdata); /* the desired pods must be recomputed */
        /* The labels and taints that other writers have set on the Node; may be unchanged. */
        void (*on_node)(const NodeLabelsTaints *external, void *userdata);
        /* An event of the node; see PodEvent. */
        void (*on_event)(const PodEvent *event, void *userdata);
        /* apiserver_last_error() or apiserver_accepts_events() may have changed. */
        void (*on_state_changed)(void *userdata);
        void *userdata;
} ApiServerConfig;

int apiserver_new(const ApiServerConfig *config, ApiServerSync **ret);
ApiServerSync *apiserver_free(ApiServerSync *api);
DEFINE_CLEANUP(ApiServerSync *, apiserver_free)

/* Restores a pod or DaemonSet that an earlier agent had received from the API server: it stays
 * desired until the server has been reached and reports otherwise. 0 or -ENOMEM. 'userdata' is the
 * ApiServerSync. */
int apiserver_restore_pod(const Pod *desired, void *userdata);
int apiserver_restore_daemonset(const DaemonSet *set, void *userdata);

/* To be called once the desired pods have been computed for the first time. The kubeconfig is read
 * when the loop is idle, a second later or after apiserver_start_now(). Errors are logged and
 * returned by apiserver_last_error(). */
void apiserver_start(ApiServerSync *api);

/* To be called when no pod waits for its first process: a container runs, or no pod is desired. May
 * be called again. */
void apiserver_start_now(ApiServerSync *api);

/* The kubeconfig, or a file that it names, may have changed. */
void apiserver_reload_kubeconfig(ApiServerSync *api);

/* Adds the pods that the server has bound to this node, after those of all other sources, which
 * keep their names. 0, or -ENOMEM if pods may be missing. 'userdata' is the ApiServerSync. */
int apiserver_add_desired_pods(DesiredPods *desired, void *userdata);

/* To be called after apiserver_add_desired_pods(): the reason why a pod that the server does not
 * desire is stopped, which the caller frees; NULL: the server did not report one. 'userdata' is the
 * ApiServerSync. */
char *apiserver_explain_stop(const PodSource *source, const Pod *local_pod, void *userdata);

/* An object of the server to which one of its pods refers, or which is shared, or NULL; also
 * reports whether the existence of the object is not known yet. For an ObjectLookup, whose userdata
 * is the ApiServerSync. */
const DataObject *apiserver_find_object(const ObjectKey *key, void *userdata);
bool apiserver_is_object_pending(const ObjectKey *key, void *userdata);

/* For a ClaimAccess, whose userdata is the ApiServerSync. */
void apiserver_refresh_claim(const DataObject *claim, void *userdata);
void apiserver_update_claim(const DataObject *claim, const ClaimUpdate *update, void *userdata);

/* For a TokenLookup, whose userdata is the ApiServerSync. */
int apiserver_find_token(const Pod *pod, const TokenProjection *projection, IssuedToken *ret,
                         Error *reterr, void *userdata);

/* For a ServiceLookup, with the same userdata: the services of the pod's namespace, and
 * default/kubernetes. */
int apiserver_add_service_variables(const Pod *pod, char ***env, Error *reterr, void *userdata);

/* Whether this node may create a pod for one of the server's DaemonSets. 1: yes; 0: no, with the
 * refusal, which the caller releases; -ENOMEM. */
int apiserver_admit_daemonset_pod(const ApiServerSync *api, const DaemonSet *set, const Pod *pod,
                                  DaemonSetRefusal *ret);

/* Adds the DaemonSets that this node evaluates. 0 or -ENOMEM. 'userdata' is the ApiServerSync. */
int apiserver_add_daemonsets(DesiredDaemonSets *sets, void *userdata);

/* All pods of this node are known, so mirror pods of unknown pods may be deleted. */
void apiserver_set_synced(ApiServerSync *api);

/* Labels, taints, images or conditions of this node may have changed. */
void apiserver_node_changed(ApiServerSync *api);

/* A CSI driver has registered or deregistered. */
void apiserver_csi_drivers_changed(ApiServerSync *api);

/* The machine shuts down and its pods are being stopped, or the shutdown was cancelled. The
 * server's pods are not reported as failed because of it: they start at the next boot. */
void apiserver_set_shutting_down(ApiServerSync *api, bool is_shutting_down);

/* Records a v1.Event of this node, new or repeated; dropped while there is no connection. */
void apiserver_record_event(ApiServerSync *api, const char *json);
bool apiserver_accepts_events(const ApiServerSync *api);

/* A pod is new or gone, or its status may have changed. */
void apiserver_on_pod(ApiServerSync *api, const Pod *local_pod, bool is_gone);

/* A separate request to the server, like kube_client_start_request(). -EAGAIN with a message while
 * there is no kubeconfig. */
int apiserver_start_request(ApiServerSync *api, const KubeRequestSpec *spec, KubeRequest **ret,
                            Error *reterr);

/* The certificate that was issued for mainstay-api and its key in PEM, borrowed; NULL: none. */
const char *apiserver_serving_pair(const ApiServerSync *api);

/* The reason why the server cannot be reached, or its refusals: the error that explains the others,
 * or NULL.
 */
const char *apiserver_last_error(const ApiServerSync *api);

/* For `describe node`. The caller frees 'ret_refused', the text that 'ret' borrows. */
void apiserver_connection_status(const ApiServerSync *api, NodeApiServerConnection *ret,
                                 char **ret_refused);

/* Prints connection, reflectors, work queues and tokens for `mainstay debug dump`. */
void apiserver_dump(const ApiServerSync *api, FILE *out);
