/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The device cgroup with cgroup v2: an eBPF program attached to the cgroup, which permits or denies
 * each open and mknod of a device. All programs of a cgroup and of its ancestors must permit the
 * access. */

#include "agent/shim/device-rules.h"

/* Replaces the program that the runtime attached to the cgroup, or an earlier replacement. If there
 * is no such program, the cgroup restricts no devices, and nothing changes. During the replacement
 * a device must be permitted by both programs, so no other device is ever permitted. 0 or -errno.
 */
int device_filter_replace(const char *cgroup_path, const DeviceRules *rules, Error *reterr);
