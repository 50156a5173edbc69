/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Whether the root of a container must be guarded while the runtime mounts it (shim/root-guard.h),
 * because the runtime would follow a name that containers may have created in a volume. */

#include "agent/bundle/runtime-spec-input.h"

#include <jansson.h>

/* 'mounts' and 'directory' are the mounts and the working directory in the runtime's configuration.
 * Also true if the answer cannot be determined. */
bool root_needs_guard(const RuntimeSpecInput *input, const json_t *mounts, const char *directory);
