/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The sources of desired pods in addition to the manifest directory, as functions that the wiring
 * connects, because this module does not depend on the DaemonSet controller or the API server. */

#include "agent/model/desired-pods.h"

/* The DaemonSet controller of this node. */
typedef struct DaemonSetPodSource {
        /* Adds the pods of these DaemonSets, then orphans. 0 or -ENOMEM. */
        int (*add_pods)(const DesiredDaemonSets *sets, DesiredPods *desired, void *userdata);
        /* Conflicts between DaemonSets, one message for each. */
        char *const *(*warnings)(void *userdata);
        /* The reason why the controller does not desire this pod, which the caller frees; NULL:
         * unknown, or the pod belongs to another source. */
        char *(*explain_stop)(const PodSource *source, const Pod *pod, void *userdata);
        /* A record of an earlier agent. 1: the pod belongs to a known DaemonSet or is an orphan; 0:
         * it does not; -ENOMEM. */
        int (*claim_record)(const PodSource *source, const Pod *pod, void *userdata);
        /* A DaemonSet from that kind of source that should run here, but whose pod of the
         * manifest's revision is not available; NULL: there is none. */
        const DaemonSet *(*find_unready)(PodSourceKind kind, void *userdata);
        void *userdata;
} DaemonSetPodSource;

/* The API server; all NULL if there is no kubeconfig. */
typedef struct ApiServerPodSource {
        int (*add_daemonsets)(DesiredDaemonSets *sets, void *userdata); /* 0 or -ENOMEM */
        int (*add_pods)(DesiredPods *desired, void *userdata);          /* likewise */
        char *(*explain_stop)(const PodSource *source, const Pod *pod, void *userdata);
        int (*restore_pod)(const Pod *pod, void *userdata);
        int (*restore_daemonset)(const DaemonSet *set, void *userdata);
        void *userdata;
} ApiServerPodSource;
