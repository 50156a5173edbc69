/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The stages of a graceful node shutdown (shutdownGracePeriodByPodPriority): pods are stopped by
 * priority, lowest first, each stage with its own time. Pure. */

#include "agent/model/config.h"

/* The stage of a pod with this priority: the last stage whose priority is not higher, or the first
 * one if all are higher. 'stages' are sorted, and there is at least one. */
size_t shutdown_stage_of(const ShutdownStage *stages, size_t n_stages, int64_t priority);

/* The total time of all stages. */
uint64_t shutdown_total_usec(const ShutdownStage *stages, size_t n_stages);
