/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The decisions that Kubernetes' DaemonSet controller would make for this node: whether a DaemonSet
 * runs here, and the pod of a revision. Pure functions: they use no file, no process and no
 * clock. */

#include "agent/model/daemonset.h"
#include "agent/model/node.h"

typedef enum DaemonSetVerdict {
        DAEMONSET_SHOULD_RUN,      /* a pod of the set should run here */
        DAEMONSET_SHOULD_CONTINUE, /* no pod is started, but a running one continues */
        DAEMONSET_SHOULD_STOP,     /* no pod of the set may run here */
        N_DAEMONSET_VERDICTS,
} DaemonSetVerdict;

/* The decision, and the rule that led to it. */
typedef struct DaemonSetDecision {
        DaemonSetVerdict verdict;
        const char *rule; /* "nodeSelector", "taint", …; static; NULL: no rule applies */
        char *why;        /* a message: "the node lacks the label gpu" */
        uint64_t until;   /* realtime, microseconds, at which the decision changes; 0: never */
} DaemonSetDecision;

void daemonset_decision_done(DaemonSetDecision *decision);

/* Why no pod of a set is created, although the set should run here: admission refuses it. */
typedef struct DaemonSetRefusal {
        const char *reason; /* reason of the condition and the event: "PodSecurity"; static; NULL:
                             * it is not known yet whether the pod is admitted */
        char *message;
} DaemonSetRefusal;

void daemonset_refusal_done(DaemonSetRefusal *refusal);

/* Pods of this node, for (anti-)affinity between pods. */
typedef struct NodePods {
        const Pod *const *items;
        size_t n;
} NodePods;

/* The rules of Kubernetes' controller. nodeName, required node affinity and nodeSelector decide
 * whether a pod may run here at all. A taint that is not tolerated prevents a pod from starting;
 * with the effect NoExecute it also stops a running pod. tolerationSeconds count from the taint's
 * timeAdded; after that time the pod is stopped, and is not started again while the node has the
 * taint. Pod affinity, which the scheduler would check, is checked against 'node_pods' (the set's
 * own pods are ignored), and prevents a pod from starting.
 *
 * 0 or -ENOMEM; the caller frees the decision. */
int daemonset_evaluate_placement(const DaemonSet *set, const NodeLabelsTaints *node,
                                 const NodePods *node_pods, uint64_t now_realtime,
                                 DaemonSetDecision *ret);

enum {
        REVISION_HASH_SIZE = 11
};

/* The pod label that contains the hash of the revision. */
extern const char revision_hash_label[];

/* The hash of a template: ten characters of Kubernetes' safe alphabet. 0 or -ENOMEM. */
int daemonset_revision_hash(const Pod *template, char ret[REVISION_HASH_SIZE]);

/* The pod of a template, as the controller would create it and the scheduler would bind it: its
 * name ("<set>-<5 characters>", which depends only on set, revision and node), UID, owner, labels,
 * tolerations and affinity. 'generation' is the number of the revision. 0 or -ENOMEM. */
int daemonset_make_pod(const DaemonSet *set, const Pod *template, const char *hash,
                       int64_t generation, const char *node_name, Pod **ret);

/* Makes the set the only owner of the pod; NULL: makes the pod an orphan. 0 or -ENOMEM. */
int daemonset_set_pod_owner(const DaemonSet *set, Pod *pod);

/* Whether the set's selector matches the pod, regardless of its owner. */
bool daemonset_selects_pod(const DaemonSet *set, const Pod *pod);

/* Whether the pod belongs to the set: its controller is a DaemonSet of apps/v1 with the set's UID,
 * it has the set's source and namespace, and the selector matches (the controller's ClaimPods). An
 * owner reference alone proves nothing, because everybody who may create a pod can write one. */
bool daemonset_controls_pod(const DaemonSet *set, const Pod *pod);
