/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* How long the node need not be looked at, because nothing can become short meanwhile. Pure. */

#include "agent/eviction/thresholds.h"

/* The kernel rings when memory becomes scarce, but not when a file system fills.
 * 'has_memory_watch': for memory it does. 'previous' is what was said last, for the observations
 * 'before'; 0: nothing was. Microseconds, at least a second; while nothing moves, longer and longer
 * up to ten. */
uint64_t next_monitoring_interval(const EvictionPolicy *policy, const SignalObservations *before,
                                  const SignalObservations *now, bool has_memory_watch,
                                  uint64_t previous);
