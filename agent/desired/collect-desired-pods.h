/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Asks the sources for the pods that are to run: manifests, DaemonSets and orphans, the API server.
 * The objects that they add are borrowed from them. It does not depend on the running pods. */

#include "agent/desired/pod-sources.h"
#include "agent/manifest/manifest.h"

/* The order decides which source gets a name that two of them use. If one fails, the set is
 * incomplete, the next ones are queried nevertheless, and the first error is returned: the caller
 * must try again. Incomplete without an error: the manifests have not all been read yet, and notify
 * when they are. */
int collect_desired_pods(const ManifestDirectory *manifests, const DaemonSetPodSource *daemonsets,
                         const ApiServerPodSource *apiserver, DesiredPods *desired);
