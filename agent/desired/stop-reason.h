/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The reason why a pod that is not desired any more is stopped. The reason is evidence that its
 * source gives: a file that was removed, a deletion at the API server, a DaemonSet that does not
 * select the node any more. A source that is broken or unknown gives no reason, and the pod keeps
 * running. */

#include "agent/desired/pod-sources.h"
#include "agent/manifest/manifest.h"

/* The caller frees it; NULL: there is none. */
char *find_stop_reason(const DaemonSetPodSource *daemonsets, const ApiServerPodSource *apiserver,
                       const ManifestDirectory *manifests, const PodSource *source, const Pod *pod);
