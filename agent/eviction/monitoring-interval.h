/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The monitoring interval: the time for which the node's resources need not be observed, because
 * none of them can run out. Pure. */

#include "agent/eviction/thresholds.h"

/* The next interval in microseconds, from one second to five minutes. While a signal does not
 * change, the interval at least doubles, up to ten seconds. The kernel sends notifications about
 * memory (if 'has_memory_watch'), but not about disks and processes. 'previous' is the interval
 * between the observations 'before' and 'now'; 0: there was none. */
uint64_t next_monitoring_interval(const EvictionPolicy *policy, const SignalObservations *before,
                                  const SignalObservations *now, bool has_memory_watch,
                                  uint64_t previous);
