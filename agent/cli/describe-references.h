/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The parts of 'describe pod' about ConfigMaps, Secrets and the downward API. */

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

void describe_env_from(FILE *out, const json_t *sources);
void describe_value_from(FILE *out, const char *name, const json_t *source);

/* False, without output, if the volume has another kind of source. */
bool describe_data_volume(FILE *out, const json_t *volume);
