/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Settings for a helper process that may contain passwords: only in memory. */

#include <jansson.h>

/* A descriptor of the compact JSON, positioned at its start, which the caller closes; -errno, and
 * -ENOMEM if 'json' is NULL. */
int json_memfd_open(const json_t *json, const char *name);
