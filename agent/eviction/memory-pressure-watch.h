/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Memory notifications from the kernel: pressure stall information (PSI), when tasks stall for a
 * tenth of a two-second window; and with cgroup v1, if kernelMemcgNotification is set, when the
 * memory in use has grown by a given amount. A notification does not mean a shortage: it makes the
 * eviction manager observe the memory. */

#include "common/error.h"

#include <systemd/sd-event.h>

typedef struct MemoryPressureWatch MemoryPressureWatch;

typedef void (*memory_pressure_t)(void *userdata);

/* 'has_memcg' enables the second kind. A kernel that supports neither is not an error; see
 * memory_pressure_watch_is_active(). 0 or -errno. */
int memory_pressure_watch_new(sd_event *event, bool has_memcg, memory_pressure_t on_pressure,
                              void *userdata, MemoryPressureWatch **ret);
MemoryPressureWatch *memory_pressure_watch_free(MemoryPressureWatch *watch);

/* Whether notifications are possible. */
bool memory_pressure_watch_is_active(const MemoryPressureWatch *watch);

/* Notifies when the memory in use has grown by 'bytes' from now on; replaces the previous call. */
void memory_pressure_watch_set_growth(MemoryPressureWatch *watch, int64_t bytes);
