/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The PriorityClasses that every Kubernetes has, and no manifest makes. */

#include <stdint.h>

enum {
        SYSTEM_CLASSES = 2,
};

typedef struct SystemClass {
        const char *name;
        int64_t value;
        const char *description;
} SystemClass;

extern const SystemClass system_classes[SYSTEM_CLASSES];
