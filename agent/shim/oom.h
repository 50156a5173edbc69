/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Whether the kernel ended something of a container for want of memory. */

#include <stdbool.h>
#include <stdint.h>

/* How often that happened in the pod of the container whose memory.events (or, of version 1,
 * memory.oom_control) is this file; 0 where nobody knows. */
uint64_t oom_kills_of_pod(const char *events_file);

/* Whether it happened in the container, which has ended by 'signal' (0: by none). systemd removes a
 * group as soon as nobody is in it, often before we look; what is left then is the pod's count,
 * which was 'before' when the container started. */
bool oom_killed(const char *events_file, int signal, uint64_t before);
