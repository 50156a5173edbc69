/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the files of cluster.h share; nobody else includes this. */

#include "agent/apiserver/apiserver.h"
#include "agent/kubeclient/certificate-manager.h"
#include "agent/kubeclient/client.h"
#include "agent/kubeclient/event-sink.h"
#include "agent/kubeclient/lease-controller.h"
#include "agent/kubeclient/node-status-updater.h"
#include "agent/kubeclient/object-summary.h"
#include "agent/kubeclient/pod-action.h"
#include "agent/kubeclient/reflector.h"
#include "agent/kubeclient/work-queue.h"
#include "agent/manifest/kubeconfig-watch.h"
#include "agent/pods/preflight.h"
#include "common/hash.h"

/* All that is known under one name: what the server has, what it wants, what is here. */
typedef struct ApiServerPod ApiServerPod;
struct ApiServerPod {
        ApiServerPod *next;
        char *key; /* "namespace/name" */

        bool has_remote;
        KubeObjectSummary remote;
        unsigned generation;              /* of the list that had it last */
        char *deleted_uid;                /* of an object that has ended: as good as not there */
        unsigned watch_events;            /* how often the watch told of it */
        unsigned watch_events_at_request; /* likewise, before the request that is under way */

        Pod *desired;    /* that an API server wants, as it was last good; or NULL */
        char *rejection; /* v1.Pod with a status that says why what it wants cannot be; or NULL */
        int64_t deletion_grace; /* with which the life was told to end; -1: it was not */

        Pod *adopted; /* one of ours that stands for what is wanted, as it is to be; or NULL */
        bool is_adopted_current; /* it is as 'wanted' has it */
        Preflight *preflight; /* of 'wanted', while one of ours that is another serves; or NULL */

        char *local_uid;    /* of the life that is here; or NULL */
        char *local_name;   /* likewise; a cover has its own */
        char *reported_uid; /* by which the server knows it */
        bool is_api_pod;    /* the life, or the last one */
        char *final_status; /* v1.Pod of a life that has ended; the server may not know it yet */
        char *final_uid;
        bool is_terminated_cached; /* that the life has succeeded or failed */

        char *refused; /* why what was told last was not taken; NULL: it was */
        KubePodActionKind request_kind;
        char reported_hash[SHA256_HEX_SIZE]; /* of the status that the server took last; "": none */
        char sent_hash[SHA256_HEX_SIZE];     /* of the one that is on its way */
};

/* What a server may refuse to a node as a whole. */
typedef enum ApiServerPermission {
        PERMISSION_NODE,
        PERMISSION_LEASE,
        PERMISSION_PODS,
        PERMISSION_SERVICES,
        PERMISSION_DAEMONSETS,
        N_APISERVER_PERMISSIONS,
} ApiServerPermission;

typedef struct ApiServerObject ApiServerObject;
typedef struct ApiServerToken ApiServerToken;
typedef struct ApiServerCache ApiServerCache;
typedef struct ApiServerServices ApiServerServices;
typedef struct ApiServerDaemonSets ApiServerDaemonSets;

struct ApiServerSync {
        ApiServerConfig config;
        Kubeconfig kubeconfig;
        KubeClient *client;
        KubeReflector *pod_reflector; /* of the pods */
        KubeWorkQueue *pod_writer;    /* likewise, by key */
        ApiServerPod *pods;           /* sorted by key */
        unsigned generation;
        ApiServerObject *objects; /* that pods refer to, sorted */
        unsigned objects_generation;
        ApiServerToken *tokens;
        KubeWorkQueue *token_writer; /* by their keys */
        sd_event_source *token_timer;
        ApiServerCache *cache; /* what is to be written of it */
        ApiServerServices *services;
        ApiServerDaemonSets *daemonsets;
        sd_event_source *objects_update_source;
        char **updated_keys; /* which they are: keys of objects, UIDs of pods that have a token */
        bool is_everything_updated; /* or whatever pods may refer to */
        bool is_listing;
        bool has_unreadable; /* something in the list cannot be read: who knows which of them it is
                              */
        bool is_synced;      /* what is here is all known */
        bool is_shutting_down; /* the machine goes down */
        bool awaits_local_pod; /* what becomes of a pod of ours decides on one of the server's */
        bool is_list_doubtful; /* the last list had so few of them that another one is due */
        NodeStatusUpdater *node;
        KubeLeaseController *lease;
        KubeEventSink *events;
        char *node_uid;                    /* of the Node object; NULL while there is none */
        KubeconfigWatch *kubeconfig_watch; /* of the kubeconfig */
        KubeBootstrap *bootstrap;          /* while it is got */
        sd_event_source *start_timer;      /* when all of that is begun with */
        CertificateManager *renewer;       /* of the certificate */
        char *directory;                   /* of certificates that are ours to renew */
        char *last_error;                  /* of the kubeconfig */
        char *certificate_error;
        char **unreachable_errors; /* why the server is away, as was said; NULL: it is not */
        char *pod_watch_error;     /* of listing or watching them */
        char *refused[N_APISERVER_PERMISSIONS]; /* why; NULL: it is not */
        uint64_t refused_since;                 /* realtime, when any of them became another */
};

/* cluster.c: the first time, or again. */
int apiserver_use_kubeconfig(ApiServerSync *api, const Kubeconfig *kubeconfig, Error *reterr);

/* cluster-identity.c */
void apiserver_free_credentials(ApiServerSync *api);

/* cluster.c: whether the trouble is no more than that the server is away. That is said here, once
 * for all who notice. */
bool apiserver_is_unreachable(ApiServerSync *api, const char *error, unsigned status);

/* cluster.c: wishes, or objects that pods refer to, are others: one by its key, a token by the UID
 * of its pod; NULL: any. */
void apiserver_schedule_recompute(ApiServerSync *api);
void apiserver_schedule_object_update(ApiServerSync *api, const char *which_key);

/* cluster-kept.c: files in a directory below <state>/cluster ("." is that one itself), written
 * behind. A text of NULL removes it. Reading gives 0, -ENOENT, -EBADMSG of one that is damaged,
 * which is set aside, or -errno. */
int apiserver_cache_new(ApiServerSync *api);
void apiserver_cache_free(ApiServerSync *api);
void apiserver_cache_write(ApiServerSync *api, const char *directory, const char *name,
                           const char *text);
int apiserver_cache_read(const ApiServerSync *api, const char *directory, const char *name,
                         size_t max_bytes, char **ret);
void apiserver_cache_set_aside(const ApiServerSync *api, const char *directory, const char *name);

/* cluster-pods.c: begins to follow the pods of this node. 0 or -errno. */
int apiserver_watch_pods(ApiServerSync *api);

/* cluster-pods.c: that of the key; made where there is none, or NULL where memory ends. */
ApiServerPod *apiserver_get_pod(ApiServerSync *api, const char *namespace, const char *name);
ApiServerPod *apiserver_find_pod(ApiServerSync *api, const char *key);
void apiserver_free_pods(ApiServerSync *api);

/* cluster-pods.c: no life is here that is told as this pod. */
void apiserver_pod_clear_local(ApiServerPod *pod);

/* cluster-covers.c: what is to be wished for so that there is what the server wants: that pod, or
 * one of ours that stands for it. 1 with it; 0 where something has to end, or to be known, before;
 * -ENOMEM. */
int apiserver_resolve_desired_pod(ApiServerSync *api, ApiServerPod *pod, DesiredPods *desired,
                                  const Pod **ret_desired);

/* cluster-covers.c: a cover of an earlier agent's. 0 or -ENOMEM. */
int apiserver_restore_adopted_pod(ApiServerSync *api, const Pod *adopted);

/* cluster-covers.c: a v1.Event of a cover as one of the pod for which it stands, which the caller
 * frees; NULL: of another, or where memory ends. */
char *apiserver_rename_adopted_event(const ApiServerSync *api, const char *json);

/* cluster-covers.c: the pod for which this life stands, or NULL; and by which UID the server knows
 * a life. */
ApiServerPod *apiserver_find_adopting_pod(ApiServerSync *api, const Pod *local_pod);
const char *apiserver_reported_uid(const ApiServerPod *pod, const Pod *local_pod);

/* cluster-ended.c: that a pod of an API server has succeeded or failed, for the next agent: after a
 * boot nothing of it is left to tell so. */
void apiserver_cache_terminated_pod(ApiServerSync *api, const char *uid, const char *json);
bool apiserver_find_terminated_pod(const ApiServerSync *api, const char *uid, char **ret_json);
void apiserver_forget_terminated_pod(ApiServerSync *api, const char *uid);

/* cluster-pods.c: what is here of them may be news to the server. */
void apiserver_report_all_pods(ApiServerSync *api);

/* cluster-standing.c: how a request ended that concerns the whole node: 'error' with the status of
 * HTTP, 0: there was no answer, which says nothing of what is refused. NULL: it was granted. */
void apiserver_set_permission_error(ApiServerSync *api, ApiServerPermission permission,
                                    const char *error, unsigned status);
void apiserver_clear_permission_errors(ApiServerSync *api);

/* What is refused, in sentences, or NULL; the caller frees it. 'with_pods': what was told of single
 * pods as well. */
char *apiserver_print_permission_errors(const ApiServerSync *api, bool with_pods);

/* cluster-daemonsets.c: who places those of the server, in words; NULL: that is not known yet. */
const char *apiserver_daemonsets_placed_by(const ApiServerSync *api);

/* cluster-machine.c: 0 or -ENOMEM; the status is the caller's. */
int apiserver_collect_node_status(const ApiServerSync *api, NodeStatus *ret);

/* cluster-node.c: begins to be a node of the server's. 0 or -errno. */
int apiserver_register_node(ApiServerSync *api);
void apiserver_free_node(ApiServerSync *api);

/* cluster-objects.c: which objects are followed is said of all pods at each wish. */
void apiserver_begin_references(ApiServerSync *api);
int apiserver_add_references(ApiServerSync *api, const Pod *pod); /* 0 or -ENOMEM */
void apiserver_end_references(ApiServerSync *api);
bool apiserver_has_updates_for(const Pod *pod, void *api);
void apiserver_free_objects(ApiServerSync *api);

/* cluster-tokens.c; 'uid' is the pod's, NULL: all, but they stay on the disk. */
extern const KubeWorkQueueSpec apiserver_token_writer;
void apiserver_forget_tokens(ApiServerSync *api, const char *uid);
void apiserver_arm_token_timer(ApiServerSync *api);

/* cluster-tokens.c: for those that were wanted, or due, while there was nobody to ask. 0 or
 * -ENOMEM. */
int apiserver_request_due_tokens(ApiServerSync *api);

/* cluster-services.c */
int apiserver_services_new(ApiServerSync *api);   /* with what was kept */
int apiserver_watch_services(ApiServerSync *api); /* 0 or -errno */
void apiserver_free_services(ApiServerSync *api);

/* cluster-daemonsets.c */
int apiserver_daemonsets_new(ApiServerSync *api);
int apiserver_start_daemonsets(ApiServerSync *api); /* 0 or -errno */
void apiserver_free_daemonsets(ApiServerSync *api);

/* cluster-write.c: what is here of a pod is told to the server. */
extern const KubeWorkQueueSpec apiserver_pod_writer;

/* cluster-write.c: frees what is in a call that was made. */
void apiserver_free_call(KubeRequestSpec *call, void *userdata);
