/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The tolerations that Kubernetes' controller adds to each pod of a DaemonSet
 * (AddOrUpdateDaemonPodTolerations). */

#include "agent/model/daemonset.h"

/* The i-th toleration that the set's pods get, or NULL after the last. Static. */
const Toleration *daemonset_automatic_toleration(const DaemonSet *set, size_t i);

/* The toleration, from the manifest or the controller, that tolerates the taint for the longest
 * time, or NULL. */
const Toleration *daemonset_find_toleration(const DaemonSet *set, const Taint *taint);
