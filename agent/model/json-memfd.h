/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A file in memory for the settings of a helper process, which may contain passwords. */

#include <jansson.h>

/* A descriptor of the compact JSON, positioned at its start, which the caller closes; -errno, and
 * -ENOMEM if 'json' is NULL. */
int json_memfd_open(const json_t *json, const char *name);
