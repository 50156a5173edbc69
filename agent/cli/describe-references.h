/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Parts of 'describe pod' about ConfigMaps, Secrets and the pod's own fields. */

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

void describe_env_from(FILE *out, const json_t *sources);
void describe_value_from(FILE *out, const char *name, const json_t *source);

/* False where the volume is made of something else; nothing is written then. */
bool describe_data_volume(FILE *out, const json_t *volume);
