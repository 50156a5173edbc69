/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Asks the sources for the pods that are to run: manifests, DaemonSets and orphans, the API server.
 * What they add is borrowed from them. It does not look at what runs. */

#include "agent/desired/pod-sources.h"
#include "agent/manifest/manifest.h"

/* The order decides which source has a name that two want. Where one fails the set is incomplete,
 * and the next ones are asked all the same. */
void collect_desired_pods(const ManifestDirectory *manifests, const DaemonSetPodSource *daemonsets,
                          const ApiServerPodSource *apiserver, DesiredPods *desired);
