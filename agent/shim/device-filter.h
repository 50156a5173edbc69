/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The device cgroup with cgroup v2: an eBPF program attached to the cgroup, which decides about
 * each open and mknod of a device. All programs at a cgroup and above must allow the access. */

#include "agent/shim/device-rules.h"

/* Replaces the program that the runtime attached at the cgroup, or an earlier one of ours. If there
 * is none, nothing is restricted there, and nothing changes. During the replacement both programs
 * decide, so no other device is ever permitted. 0 or -errno. */
int device_filter_replace(const char *cgroup_path, const DeviceRules *rules, Error *reterr);
