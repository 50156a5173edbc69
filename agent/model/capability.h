/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Linux capabilities by name, and sets of them as masks: bit n is capability n. */

#include "common/error.h"

#include <stdint.h>

enum {
        N_CAPABILITIES = 41,
};

#define CAPABILITIES_ALL       ((UINT64_C(1) << N_CAPABILITIES) - 1)
#define CAPABILITY_BIT(number) (UINT64_C(1) << (number))

/* "CAP_CHOWN" */
extern const char *const capability_names[N_CAPABILITIES];

/* The number of "CHOWN" or "CAP_CHOWN", case-insensitive; -EINVAL if the name is unknown. */
int capability_from_name(const char *name);

/* "ALL", case-insensitive. */
bool capability_is_all(const char *name);

/* The check function for a field: a name or ALL. */
int check_capability(const char *value, Error *reterr);
