/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A property of a slice in systemd's D-Bus interface, see systemd.resource-control(5). bundle/
 * computes properties, sandbox/ sends them to PID 1. All are 64-bit numbers. */

#include <stdint.h>

typedef struct SliceProperty {
        const char *name; /* "MemoryMax" */
        uint64_t value;   /* UINT64_MAX: no limit */
} SliceProperty;

enum {
        SLICE_PROPERTIES_MAX = 16
};
