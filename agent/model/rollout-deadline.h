/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The times of a rollout with mainstay.dev/progress-deadline-seconds, of a pod of a manifest or of
 * a DaemonSet: when the new revision counts as good, and when it has missed its deadline.
 * Kubernetes has this for Deployments only (progressDeadlineSeconds). Pure; all in microseconds of
 * one clock. */

#include "agent/model/daemonset.h"

/* Within which time a new revision must be good, so that it is not rolled back; 0: no deadline. */
uint64_t pod_progress_deadline_usec(const Pod *pod);
uint64_t daemonset_progress_deadline_usec(const DaemonSet *set);

/* When a revision that is ready since 'ready_since' counts as good. It must stay ready for a while:
 * a pod that crashes at once is also ready for a moment. */
uint64_t rollout_good_at(uint64_t deadline, uint64_t ready_since);

/* When a rollout of 'since' has missed its deadline. One that an agent finds under way at its
 * start, or after the machine has slept, gets half of the deadline again: 'awake_since' is the
 * later of the two. */
uint64_t rollout_failed_at(uint64_t deadline, uint64_t since, uint64_t awake_since);
