/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The phase of a pod, and the messages of its conditions, computed from the statuses of its
 * containers as in the kubelet. Pure. */

#include "agent/model/status.h"

/* The kubelet's getPhase(): an init container that failed permanently fails the pod, one that has
 * not completed keeps it Pending until a main container has run. Sidecars keep it Running; their
 * exit codes are ignored. 'all_restart': all containers that have ended will run again; 'is_over':
 * none will, so those that have not succeeded have failed. */
PodPhase pod_phase(const PodSpec *spec, const PodStatus *status, bool all_restart, bool is_over);

/* Whether a main container runs or has run, so that the pod was initialized once. */
bool pod_was_initialized(const PodStatus *status);

/* "containers with incomplete status: [a b]": init containers that have not completed. NULL if all
 * have completed, or if memory is exhausted. */
char *list_incomplete_containers(const PodSpec *spec, const PodStatus *status);

/* "containers with unready status: [a b]": sidecars and main containers. */
char *list_unready_containers(const PodSpec *spec, const PodStatus *status);

/* The conditions for which the pod's readinessGates wait, in the kubelet's words: conditions of the
 * status, or 'external' ones, that are not true, or not set. NULL if all are true, or if memory is
 * exhausted. */
char *list_unready_readiness_gates(const PodSpec *spec, const PodStatus *status,
                                   const StringMap *external);
