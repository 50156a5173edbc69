/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The tolerations that the controller gives to every pod of a DaemonSet. */

#include "agent/model/daemonset.h"

/* The i-th of those that the set's pods get, or NULL behind the last. Static. */
const Toleration *daemonset_automatic_toleration(const DaemonSet *set, size_t i);

/* A toleration of the pod's own or of the controller's that tolerates the taint, or NULL; of
 * several, the one that does so longest. */
const Toleration *daemonset_find_toleration(const DaemonSet *set, const Taint *taint);
