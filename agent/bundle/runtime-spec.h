/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* config.json of the OCI runtime specification (1.0.2). Pure functions: they return text. */

#include "agent/bundle/runtime-spec-input.h"

/* The text of config.json, freed by the caller. -errno with the message of CreateContainerError,
 * for example if neither the pod nor the image has a command. -BUNDLE_CONFIG_ERROR:
 * CreateContainerConfigError, see container_variables(). */
int make_runtime_spec(const RuntimeSpecInput *input, char **ret, Error *reterr);
