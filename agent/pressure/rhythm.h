/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* How long the node need not be looked at, because nothing can become short meanwhile. Pure. */

#include "agent/pressure/thresholds.h"

/* The kernel rings when memory becomes scarce, but not when a file system fills. 'has_doorbell':
 * for memory it does. 'previous' is what was said last, for the observations 'before'; 0: nothing
 * was. Microseconds, at least a second; while nothing moves, longer and longer up to ten. */
uint64_t rhythm_next(const EvictionPolicy *policy, const Observations *before,
                     const Observations *now, bool has_doorbell, uint64_t previous);
