/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The probes of a container as "kubectl describe" has them. */

#include <jansson.h>
#include <stdio.h>

/* A line each, where there is one. */
void describe_probes(FILE *out, const json_t *container);
