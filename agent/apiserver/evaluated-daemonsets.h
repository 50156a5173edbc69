/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The API server's DaemonSets that this node evaluates itself, because no controller manager does.
 * The controller manager's Lease shows whether it is alive; it is read every minute, and more often
 * while its state is doubtful (controller-lease.h). As long as the Lease is renewed, the controller
 * binds the pods. If it is not renewed or does not exist, the DaemonSets are listed and watched; a
 * pod that the controller has bound stays until its template or its placement changes; then it is
 * deleted, and this node creates the next one, if that is admitted. An unreachable server, or one
 * that refuses the Lease, changes nothing. DaemonSets for which this node has created pods are
 * watched until the controller has bound pods in their place, or the DaemonSets are removed. */

#include "agent/apiserver/daemonset-admission.h"
#include "agent/model/desired-pods.h"
#include "agent/model/event.h"
#include "agent/model/node.h"

#include <stdio.h>

typedef struct ApiServerDaemonSets ApiServerDaemonSets;

/* Borrowed. */
typedef struct ApiServerDaemonSetsSpec {
        sd_event *event;
        const char *node_name;
        DaemonSetsBy daemonsets_by;
        char *const *namespaces; /* see DaemonSetAdmission */
        AdmittedPods *admitted;
        NamespacePolicies *policies;
        ConnectionStatus *connection;
        void (*on_recompute_due)(void *userdata);
        const NodeLabelsTaints *node; /* the node's labels and taints, including external ones */
        /* The pod of the DaemonSet that is bound to this node, or NULL. */
        const Pod *(*find_bound_pod)(const DaemonSet *set, void *userdata);
        /* Deletes that pod at the server, as the controller manager would. */
        void (*retire_bound_pod)(const DaemonSet *set, const char *why, void *userdata);
        /* An event of a DaemonSet. */
        void (*on_event)(const PodEvent *event, void *userdata);
        void *userdata;
} ApiServerDaemonSetsSpec;

int apiserver_daemonsets_new(const ApiServerDaemonSetsSpec *spec, ApiServerDaemonSets **ret);
ApiServerDaemonSets *apiserver_daemonsets_free(ApiServerDaemonSets *sets);
int apiserver_daemonsets_start(ApiServerDaemonSets *sets, KubeClient *client); /* 0 or -errno */

/* Restores a DaemonSet of an earlier agent: it stays desired until the server reports otherwise. 0
 * or -ENOMEM. */
int apiserver_daemonsets_restore(ApiServerDaemonSets *sets, const DaemonSet *set);

/* Adds the DaemonSets that this node evaluates. 0 or -ENOMEM. */
int apiserver_daemonsets_add_desired(ApiServerDaemonSets *sets, DesiredDaemonSets *desired);

/* See daemonset_admission_check(). */
int apiserver_daemonsets_admit(const ApiServerDaemonSets *sets, const DaemonSet *set,
                               const Pod *pod, DaemonSetRefusal *ret);

/* "this node" or "the controller manager"; NULL while it is not known. */
const char *apiserver_daemonsets_placed_by(const ApiServerDaemonSets *sets);

/* Prints which side places DaemonSets, and why, for `mainstay debug dump`. */
void apiserver_daemonsets_dump(const ApiServerDaemonSets *sets, FILE *out);
