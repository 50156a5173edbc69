/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Detects OOM kills: whether the kernel's OOM killer ended a process of a container, whose
 * termination reason is then OOMKilled. */

#include <stdbool.h>
#include <stdint.h>

/* The number of OOM kills in the pod of the container to which this memory.events file (or
 * memory.oom_control on version 1) belongs; 0 if it is unknown. */
uint64_t oom_kills_of_pod(const char *events_file);

/* Whether the container that was ended by 'signal' (0: none) had an OOM kill. systemd removes a
 * cgroup as soon as it is empty, often before the shim has read it. In that case the pod's count is
 * compared with 'before', its value when the container started. */
bool oom_killed(const char *events_file, int signal, uint64_t before);
