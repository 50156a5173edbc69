/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The API server's part in this node, where there is one: the pods that it has bound here are
 * wished for, and what becomes of all pods is told there. Optional in every sense: nothing on the
 * way of a container waits for it, and what is not reached is no order to stop anything. */

#include "agent/daemons.h"
#include "agent/image/image.h"
#include "agent/manifest/manifest.h"
#include "agent/model/node-status.h"
#include "agent/model/node.h"
#include "agent/model/object.h"
#include "agent/model/service.h"
#include "agent/model/token.h"
#include "agent/supervise/supervisor.h"

typedef struct Cluster Cluster;

/* What the server is told of this machine. */
typedef struct ClusterMachine {
        const NodeFacts *own; /* what it says of itself; may change, see cluster_node_changed() */
        const NodeConditions *conditions; /* likewise */
        const EvictionPolicy *eviction;
        const char *hostname;
        const char *address; /* NULL: none */
        unsigned n_cpus;
        int64_t memory;  /* bytes */
        int64_t storage; /* likewise, where pods write to */
        ImageStore *images;
        const StringMap *runtimes; /* by their handlers, beside the one that has no name */
} ClusterMachine;

/* Everything is borrowed and outlives the Cluster. */
typedef struct ClusterConfig {
        sd_event *event;
        const char *kubeconfig;           /* the file; it need not be there yet */
        const char *bootstrap_kubeconfig; /* to get it with; NULL: none */
        const char *node_name;
        const char *state_dir;
        const char *run_dir;
        Supervisor *supervisor;
        DaemonSetsBy daemonsets_by;
        ClusterMachine machine;
        void (*on_due)(void *userdata); /* wishes are due */
        /* What others have put onto the Node: labels and taints, and no more than these. It may be
         * the same as before. */
        void (*on_node)(const NodeFacts *others, void *userdata);
        /* cluster_trouble() or cluster_takes_events() may be another. */
        void (*on_state)(void *userdata);
        void *userdata;
} ClusterConfig;

int cluster_new(const ClusterConfig *config, Cluster **ret);
Cluster *cluster_free(Cluster *cluster);
DEFINE_CLEANUP(Cluster *, cluster_free)

/* In place of a file's name, in the records of pods that an API server wants. */
extern const char cluster_file[];

/* A pod of such a record: wanted until the server, once reached, says otherwise. 0 or -ENOMEM. */
int cluster_seed(Cluster *cluster, const Pod *wish);

/* In place of a file's name, where DaemonSets come from; and one of an earlier agent's, which is
 * wished for until the server says otherwise. */
extern const char cluster_origin[];
int cluster_seed_daemonset(Cluster *cluster, const DaemonSet *set);

/* After the first wishes. A second later, or as soon as it is hastened, when the loop has nothing
 * else to do, the kubeconfig is read and the server asked. What is wrong is said in the log and in
 * cluster_trouble(); nothing waits for it. */
void cluster_start(Cluster *cluster);

/* Nobody's first process is on its way: a container runs, or none is wanted. May be said again. */
void cluster_hasten(Cluster *cluster);

/* The kubeconfig, or what it names, may be another. */
void cluster_reload(Cluster *cluster);

/* Between supervisor_begin() and supervisor_sweep(), after the pods of files, which keep their
 * names. 0, or -ENOMEM: then a wish may not have been heard. */
int cluster_want(Cluster *cluster);

/* An object that a pod of the server's refers to, or NULL; and whether it is not known yet if there
 * is one. */
const DataObject *cluster_find_object(Cluster *cluster, ObjectKind kind, const char *namespace,
                                      const char *name);
bool cluster_awaits_object(Cluster *cluster, ObjectKind kind, const char *namespace,
                           const char *name);

/* For a TokenLookup, whose userdata is the Cluster. */
int cluster_find_token(const Pod *pod, const TokenProjection *projection, const char **ret_token,
                       Error *reterr, void *userdata);

/* For a ServiceLookup, likewise: the services of the pod's namespace, and the server's own. */
int cluster_add_variables(const Pod *pod, char ***env, Error *reterr, void *userdata);

/* Between daemons_begin() and daemons_end(), after the sets of files: those that this node has to
 * place. 0 or -ENOMEM. */
int cluster_want_daemonsets(Cluster *cluster, Daemons *daemons);

/* All that is here is known, so that a mirror of what is not may go. */
void cluster_set_synced(Cluster *cluster);

/* Labels, taints, images or conditions of this node may be others. */
void cluster_node_changed(Cluster *cluster);

/* The machine goes down, and its pods are being stopped; or does not after all. Pods of the
 * server's are not told to have failed of it: they begin again at the next boot. */
void cluster_set_leaving(Cluster *cluster, bool is_leaving);

/* A v1.Event that happened here, once or once more; lost while nobody takes any. */
void cluster_tell_event(Cluster *cluster, const char *json);
bool cluster_takes_events(const Cluster *cluster);

/* A pod's status may be another; it is new or gone. */
void cluster_on_pod(Cluster *cluster, const Pod *life, bool is_gone);

/* Why the server is not reached, or what it refuses: the first of all sentences; or NULL. */
const char *cluster_trouble(const Cluster *cluster);

/* How this node stands with the server. 'ret_refused' is what 'ret' says of that, which the caller
 * frees. */
void cluster_standing(const Cluster *cluster, NodeStanding *ret, char **ret_refused);
