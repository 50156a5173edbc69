/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A property of a slice as systemd's D-Bus interface has it, systemd.resource-control(5). bundle/
 * computes them, sandbox/ asks PID 1 for them. All that we use are numbers of 64 bits. */

#include <stdint.h>

typedef struct SliceProperty {
        const char *name; /* "MemoryMax" */
        uint64_t value;   /* UINT64_MAX: no limit */
} SliceProperty;

enum {
        SLICE_PROPERTIES_MAX = 16
};
