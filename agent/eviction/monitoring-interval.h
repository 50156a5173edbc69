/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The monitoring interval: the time for which the node's resources need not be observed, because
 * none of them can run out. Pure. */

#include "agent/eviction/thresholds.h"

/* The kernel notifies about memory (if 'has_memory_watch'), but not about disks and processes.
 * 'previous' is the last interval, used before the observations 'before'; 0: there was none.
 * Microseconds, at least a second; while nothing changes, it doubles, up to ten seconds. */
uint64_t next_monitoring_interval(const EvictionPolicy *policy, const SignalObservations *before,
                                  const SignalObservations *now, bool has_memory_watch,
                                  uint64_t previous);
