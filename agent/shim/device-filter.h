/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The device cgroup of version 2: an eBPF program at the cgroup, which decides about each open and
 * mknod of a device. All programs at a cgroup and above have to allow it. */

#include "agent/shim/device-rules.h"

/* Replaces the program that the runtime attached at the cgroup, or an earlier one of ours. Without
 * one, nothing is restricted there, and nothing changes. In between, both decide, so no other
 * device is permitted at any time. 0 or -errno. */
int device_filter_replace(const char *cgroup_path, const DeviceRules *rules, Error *reterr);
