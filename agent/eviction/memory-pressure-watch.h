/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The kernel rings when memory becomes scarce: by pressure stall information, when tasks or the
 * kernel itself wait for memory for a tenth of two seconds; and, on control groups of version 1 and
 * where that is asked for, when the memory in use has grown by so much. What it rings for may be
 * nothing; whoever hears it looks. */

#include "common/error.h"

#include <systemd/sd-event.h>

typedef struct MemoryPressureWatch MemoryPressureWatch;

typedef void (*memory_pressure_t)(void *userdata);

/* 'has_memcg' asks for the second. A kernel without either is no error; see
 * memory_pressure_watch_is_active(). 0 or -errno. */
int memory_pressure_watch_new(sd_event *event, bool has_memcg, memory_pressure_t on_pressure,
                              void *userdata, MemoryPressureWatch **ret);
MemoryPressureWatch *memory_pressure_watch_free(MemoryPressureWatch *watch);

/* Whether anybody rings. */
bool memory_pressure_watch_is_active(const MemoryPressureWatch *watch);

/* Rings when the memory in use has grown by 'bytes' from now; what was said before is forgotten. */
void memory_pressure_watch_set_growth(MemoryPressureWatch *watch, int64_t bytes);
