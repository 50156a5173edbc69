/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What the statuses of its containers make of a pod, in the kubelet's words. Pure. */

#include "agent/model/status.h"

/* The kubelet's getPhase(): of init, what failed for good fails the pod, and what is not done keeps
 * it Pending until a main container has run. Sidecars keep it Running, and their ends count for
 * nothing. 'all_restart': whatever has ended begins again; 'is_over': nothing does, so what has not
 * succeeded has failed. */
PodPhase pod_phase(const PodSpec *spec, const PodStatus *status, bool all_restart, bool is_over);

/* A main container runs or ran: the pod was initialized once. */
bool pod_was_initialized(const PodStatus *status);

/* "containers with incomplete status: [a b]": those of init that are not done. NULL where all are,
 * or where memory is short. */
char *list_incomplete_containers(const PodSpec *spec, const PodStatus *status);

/* "containers with unready status: [a b]": sidecars and main containers. */
char *list_unready_containers(const PodSpec *spec, const PodStatus *status);

/* What the pod's readiness gates wait for, in the kubelet's words: conditions of the status that
 * are not true, or that nobody has set. NULL where all are open, or where memory is short. */
char *list_unready_gates(const PodSpec *spec, const PodStatus *status);
