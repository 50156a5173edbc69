/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Collects the pods that should run from the sources: manifests, DaemonSets and orphans, the API
 * server. The objects that the sources add are borrowed from them. The result does not depend on
 * the running pods. */

#include "agent/desired/pod-sources.h"
#include "agent/manifest/manifest.h"

/* The order determines which source gets a name that two of them use. If a source fails, the set is
 * incomplete, the remaining sources are queried nevertheless, and the first error is returned: the
 * caller must try again. If the set is incomplete without an error, some manifests have not been
 * read yet; the manifest directory sends a notification when they have been. */
int collect_desired_pods(const ManifestDirectory *manifests, const DaemonSetPodSource *daemonsets,
                         const ApiServerPodSource *apiserver, DesiredPods *desired);
