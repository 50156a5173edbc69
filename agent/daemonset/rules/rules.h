/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The door of the room: what Kubernetes' DaemonSet controller would do on this node. Pure
 * functions: they touch no file, no process and no clock. */

#include "agent/model/daemonset.h"
#include "agent/model/node.h"

typedef enum DaemonSetVerdict {
        DAEMONSET_SHOULD_RUN,      /* a pod of it belongs here */
        DAEMONSET_SHOULD_CONTINUE, /* none is started, but one that runs goes on */
        DAEMONSET_SHOULD_STOP,     /* none belongs here */
        N_DAEMONSET_VERDICTS,
} DaemonSetVerdict;

/* What was decided, and by which one rule. */
typedef struct DaemonSetDecision {
        DaemonSetVerdict verdict;
        const char *rule; /* "nodeSelector", "taint", …; static; NULL: none asks for anything */
        char *why;        /* a sentence without its subject: "the node has no label gpu" */
        uint64_t until;   /* realtime, microseconds: when it is to be decided anew; 0: never */
} DaemonSetDecision;

void daemonset_decision_done(DaemonSetDecision *decision);

/* Pods of this node, for (anti-)affinity between pods. */
typedef struct NodePods {
        const Pod *const *items;
        size_t n;
} NodePods;

/* The controller's own rules: nodeName, required node affinity and nodeSelector decide whether a
 * pod may be here at all; a taint that is not tolerated keeps one from starting, and ends it where
 * its effect is NoExecute. tolerationSeconds count from the taint's timeAdded; then the pod ends
 * and is not begun again while the taint stands. Affinity between pods, which the scheduler would
 * look at, is looked at among 'peers' (its own pods are not asked), and keeps a pod from starting.
 *
 * 0 or -ENOMEM; the caller ends the decision. */
int daemonset_evaluate(const DaemonSet *set, const NodeLabelsTaints *node,
                       const NodePods *node_pods, uint64_t now_realtime, DaemonSetDecision *ret);

enum {
        REVISION_HASH_SIZE = 11
};

/* The label of a pod with the hash of its revision. */
extern const char revision_hash_label[];

/* What a template is called: ten characters of Kubernetes' safe alphabet. 0 or -ENOMEM. */
int daemonset_revision_hash(const Pod *template, char ret[REVISION_HASH_SIZE]);

/* The pod of a template, as the controller would make it and the scheduler would bind it: its name
 * ("<set>-<5 characters>", the same for the same set, revision and node), UID, owner, labels,
 * tolerations and affinity. 'generation' is the number of the revision. 0 or -ENOMEM. */
int daemonset_make_pod(const DaemonSet *set, const Pod *template, const char *hash,
                       int64_t generation, const char *node_name, Pod **ret);

/* The pod has the set for its owner from then on, and no other; NULL: nobody. 0 or -ENOMEM. */
int daemonset_set_pod_owner(const DaemonSet *set, Pod *pod);

/* Whether a pod with these labels is the set's by its selector; whose it is already is not asked.
 */
bool daemonset_selects_pod(const DaemonSet *set, const Pod *pod);
