/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The tolerations that Kubernetes' controller adds to each pod of a DaemonSet
 * (AddOrUpdateDaemonPodTolerations). */

#include "agent/model/daemonset.h"

/* The i-th toleration that the set's pods get, or NULL after the last. Static. */
const Toleration *daemonset_automatic_toleration(const DaemonSet *set, size_t i);

/* A toleration of the manifest or of the controller that tolerates the taint, or NULL; if there are
 * several, the longest one. */
const Toleration *daemonset_find_toleration(const DaemonSet *set, const Taint *taint);
