/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The paths in /proc and /sys that are hidden from a container: the kubelet's lists
 * (pkg/securitycontext). */

#include "agent/bundle/bundle-settings.h"

#include <jansson.h>

#define CPUS_DIRECTORY "/sys/devices/system/cpu"

/* The directories with the thermal throttling counters of CPUs, from which secrets of other
 * processes can be inferred: "<directory>/cpu<N>/thermal_throttle", for the CPUs that have one,
 * sorted by number. 0 or -ENOMEM. */
int find_thermal_throttles(const char *directory, char ***ret);

/* linux.maskedPaths and linux.readonlyPaths. */
json_t *masked_paths_section(const BundleConfig *config);
json_t *readonly_paths_section(void);
