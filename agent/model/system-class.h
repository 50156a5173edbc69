/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The PriorityClasses that exist in every Kubernetes cluster, and that no manifest can define. */

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
