/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the files of cluster.h share; nobody else includes this. */

#include "agent/cluster.h"
#include "agent/kube/client.h"
#include "agent/kube/event-writer.h"
#include "agent/kube/lease.h"
#include "agent/kube/metadata.h"
#include "agent/kube/node-keeper.h"
#include "agent/kube/pod-write.h"
#include "agent/kube/reflector.h"
#include "agent/kube/renewer.h"
#include "agent/kube/writer.h"
#include "agent/manifest/kubeconfig-watch.h"
#include "agent/supervise/staging.h"
#include "common/hash.h"

/* All that is known under one name: what the server has, what it wants, what is here. */
typedef struct ClusterPod ClusterPod;
struct ClusterPod {
        ClusterPod *following;
        char *key; /* "namespace/name" */

        bool has_remote;
        KubeMetadata remote;
        unsigned generation; /* of the list that had it last */
        char *deleted_uid;   /* of an object that has ended: as good as not there */
        unsigned n_heard;    /* how often the watch told of it */
        unsigned asked_at;   /* likewise, before the request that is under way */

        Pod *wanted;   /* that an API server wants, as it was last good; or NULL */
        char *refusal; /* v1.Pod with a status that says why what it wants cannot be; or NULL */
        int64_t told_grace; /* with which the life was told to end; -1: it was not */

        Pod *cover;       /* one of ours that stands for what is wanted, as it is to be; or NULL */
        bool is_carried;  /* it is as 'wanted' has it */
        Staging *staging; /* of 'wanted', while one of ours that is another serves; or NULL */

        char *local_uid;  /* of the life that is here; or NULL */
        char *local_name; /* likewise; a cover has its own */
        char *told_uid;   /* by which the server knows it */
        bool is_of_api;   /* the life, or the last one */
        char *last;       /* v1.Pod of a life that has ended; the server may not know it yet */
        char *last_uid;
        bool is_noted; /* that the life has succeeded or failed */

        char *refused; /* why what was told last was not taken; NULL: it was */
        KubePodWriteKind under_way;
        char told[SHA256_HEX_SIZE]; /* of the status that the server took last; "": none */
        char sent[SHA256_HEX_SIZE]; /* of the one that is on its way */
};

/* What a server may refuse to a node as a whole. */
typedef enum ClusterConcern {
        CONCERN_NODE,
        CONCERN_LEASE,
        CONCERN_PODS,
        CONCERN_SERVICES,
        CONCERN_DAEMONSETS,
        N_CLUSTER_CONCERNS,
} ClusterConcern;

typedef struct ClusterObject ClusterObject;
typedef struct ClusterToken ClusterToken;
typedef struct ClusterKept ClusterKept;
typedef struct ClusterServices ClusterServices;
typedef struct ClusterDaemonSets ClusterDaemonSets;

struct Cluster {
        ClusterConfig config;
        Kubeconfig kubeconfig;
        KubeClient *client;
        KubeReflector *reflector; /* of the pods */
        KubeWriter *writer;       /* likewise, by key */
        ClusterPod *pods;         /* sorted by key */
        unsigned generation;
        ClusterObject *objects; /* that pods refer to, sorted */
        unsigned objects_generation;
        ClusterToken *tokens;
        KubeWriter *token_writer; /* by their keys */
        sd_event_source *token_timer;
        ClusterKept *kept; /* what is to be written of it */
        ClusterServices *services;
        ClusterDaemonSets *daemonsets;
        sd_event_source *wishes_due; /* once a turn of the loop, whatever came */
        sd_event_source *objects_due;
        char **news;      /* which they are: keys of objects, UIDs of pods that have a token */
        bool is_all_news; /* or whatever pods may refer to */
        bool is_listing;
        bool is_unclear;  /* something in the list cannot be read: who knows which of them it is */
        bool is_synced;   /* what is here is all known */
        bool is_leaving;  /* the machine goes down */
        bool awaits_ours; /* what becomes of a pod of ours decides on one of the server's */
        bool has_doubt;   /* the last list had so few of them that another one is due */
        NodeKeeper *node;
        KubeLease *lease;
        EventWriter *events;
        char *node_uid;           /* of the Node object; NULL while there is none */
        KubeconfigWatch *files;   /* of the kubeconfig */
        KubeBootstrap *bootstrap; /* while it is got */
        sd_event_source *start;   /* when all of that is begun with */
        KubeRenewer *renewer;     /* of the certificate */
        char *directory;          /* of certificates that are ours to renew */
        char *trouble;            /* of the kubeconfig */
        char *certificate_trouble;
        char **away;        /* why the server is away, as was said; NULL: it is not */
        char *pods_trouble; /* of listing or watching them */
        char *refused[N_CLUSTER_CONCERNS]; /* why; NULL: it is not */
        uint64_t refused_since;            /* realtime, when any of them became another */
};

/* cluster.c: the first time, or again. */
int cluster_use_kubeconfig(Cluster *cluster, const Kubeconfig *kubeconfig, Error *reterr);

/* cluster-identity.c */
void cluster_forget_identity(Cluster *cluster);

/* cluster.c: whether the trouble is no more than that the server is away. That is said here, once
 * for all who notice. */
bool cluster_is_away(Cluster *cluster, const char *error, unsigned status);

/* cluster.c: wishes, or objects that pods refer to, are others: one by its key, a token by the UID
 * of its pod; NULL: any. */
void cluster_schedule_wishes(Cluster *cluster);
void cluster_schedule_objects(Cluster *cluster, const char *which);

/* cluster-kept.c: files in a directory below <state>/cluster ("." is that one itself), written
 * behind. A text of NULL removes it. Reading gives 0, -ENOENT, -EBADMSG of one that is damaged,
 * which is set aside, or -errno. */
int cluster_kept_new(Cluster *cluster);
void cluster_forget_kept(Cluster *cluster);
void cluster_keep(Cluster *cluster, const char *directory, const char *name, const char *text);
int cluster_read_kept(const Cluster *cluster, const char *directory, const char *name,
                      size_t max_bytes, char **ret);
void cluster_set_kept_aside(const Cluster *cluster, const char *directory, const char *name);

/* cluster-pods.c: begins to follow the pods of this node. 0 or -errno. */
int cluster_follow_pods(Cluster *cluster);

/* cluster-pods.c: that of the key; made where there is none, or NULL where memory ends. */
ClusterPod *cluster_get_pod(Cluster *cluster, const char *namespace, const char *name);
ClusterPod *cluster_find_pod(Cluster *cluster, const char *key);
void cluster_forget_pods(Cluster *cluster);

/* cluster-pods.c: no life is here that is told as this pod. */
void cluster_forget_life(ClusterPod *pod);

/* cluster-covers.c: what is to be wished for so that there is what the server wants: that pod, or
 * one of ours that stands for it. 1 with it; 0 where something has to end, or to be known, before;
 * -ENOMEM. */
int cluster_meet(Cluster *cluster, ClusterPod *pod, const Pod **ret_wish);

/* cluster-covers.c: a cover of an earlier agent's. 0 or -ENOMEM. */
int cluster_seed_cover(Cluster *cluster, const Pod *cover);

/* cluster-covers.c: a v1.Event of a cover as one of the pod for which it stands, which the caller
 * frees; NULL: of another, or where memory ends. */
char *cluster_rename_event(const Cluster *cluster, const char *json);

/* cluster-covers.c: the pod for which this life stands, or NULL; and by which UID the server knows
 * a life. */
ClusterPod *cluster_find_covered(Cluster *cluster, const Pod *life);
const char *cluster_told_uid(const ClusterPod *pod, const Pod *life);

/* cluster-ended.c: that a pod of an API server has succeeded or failed, for the next agent: after a
 * boot nothing of it is left to tell so. */
void cluster_note_ended(Cluster *cluster, const char *uid, const char *json);
bool cluster_has_ended(const Cluster *cluster, const char *uid, char **ret_json);
void cluster_forget_ended(Cluster *cluster, const char *uid);

/* cluster-pods.c: what is here of them may be news to the server. */
void cluster_tell_all_pods(Cluster *cluster);

/* cluster-standing.c: how a request ended that concerns the whole node: 'error' with the status of
 * HTTP, 0: there was no answer, which says nothing of what is refused. NULL: it was granted. */
void cluster_note_refusal(Cluster *cluster, ClusterConcern concern, const char *error,
                          unsigned status);
void cluster_forget_refusals(Cluster *cluster);

/* What is refused, in sentences, or NULL; the caller frees it. 'with_pods': what was told of single
 * pods as well. */
char *cluster_print_refusals(const Cluster *cluster, bool with_pods);

/* cluster-daemonsets.c: who places those of the server, in words; NULL: that is not known yet. */
const char *cluster_daemonsets_by(const Cluster *cluster);

/* cluster-machine.c: 0 or -ENOMEM; the status is the caller's. */
int cluster_describe_machine(const Cluster *cluster, NodeStatus *ret);

/* cluster-node.c: begins to be a node of the server's. 0 or -errno. */
int cluster_keep_node(Cluster *cluster);
void cluster_forget_node(Cluster *cluster);

/* cluster-objects.c: which objects are followed is said of all pods at each wish. */
void cluster_begin_references(Cluster *cluster);
int cluster_note_references(Cluster *cluster, const Pod *pod); /* 0 or -ENOMEM */
void cluster_end_references(Cluster *cluster);
bool cluster_has_news_for(const Pod *pod, void *cluster);
void cluster_forget_objects(Cluster *cluster);

/* cluster-tokens.c; 'uid' is the pod's, NULL: all, but they stay on the disk. */
extern const KubeWriterSpec cluster_token_writer;
void cluster_forget_tokens(Cluster *cluster, const char *uid);
void cluster_arm_tokens(Cluster *cluster);

/* cluster-tokens.c: for those that were wanted, or due, while there was nobody to ask. 0 or
 * -ENOMEM. */
int cluster_ask_tokens(Cluster *cluster);

/* cluster-services.c */
int cluster_services_new(Cluster *cluster);    /* with what was kept */
int cluster_follow_services(Cluster *cluster); /* 0 or -errno */
void cluster_forget_services(Cluster *cluster);

/* cluster-daemonsets.c */
int cluster_daemonsets_new(Cluster *cluster);
int cluster_place_daemonsets(Cluster *cluster); /* 0 or -errno */
void cluster_forget_daemonsets(Cluster *cluster);

/* cluster-write.c: what is here of a pod is told to the server. */
extern const KubeWriterSpec cluster_pod_writer;

/* cluster-write.c: frees what is in a call that was made. */
void cluster_unmake_call(KubeCall *call, void *userdata);
