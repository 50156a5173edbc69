/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Settings for a helper process, which may have passwords in them: only in memory. */

#include <jansson.h>

/* A descriptor of the compact JSON, at its start, that the caller closes; -errno, and -ENOMEM if
 * 'json' is NULL. */
int json_memfd_open(const json_t *json, const char *name);
