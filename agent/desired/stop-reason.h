/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Finds the reason why a pod that is no longer desired is stopped. The reason is evidence from its
 * source: a file that was removed, a deletion at the API server, a DaemonSet that no longer selects
 * the node. A broken or unknown source gives no reason, and the pod keeps running. */

#include "agent/desired/pod-sources.h"
#include "agent/manifest/manifest.h"

/* The caller frees it; NULL: there is none. */
char *find_stop_reason(const DaemonSetPodSource *daemonsets, const ApiServerPodSource *apiserver,
                       const ManifestDirectory *manifests, const PodSource *source, const Pod *pod);
