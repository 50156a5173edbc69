/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Asks the sources for the pods that are to run: manifests, DaemonSets and orphans, the API server.
 * What they add is borrowed from them. It does not look at what runs. */

#include "agent/desired/pod-sources.h"
#include "agent/manifest/manifest.h"

/* The order decides which source has a name that two want. Where one fails the set is incomplete,
 * the next ones are asked all the same, and the first error is returned: it is to be tried again.
 * Incomplete without an error: the manifests were not all read yet, and say so when they are. */
int collect_desired_pods(const ManifestDirectory *manifests, const DaemonSetPodSource *daemonsets,
                         const ApiServerPodSource *apiserver, DesiredPods *desired);
