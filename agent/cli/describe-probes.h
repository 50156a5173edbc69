/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The probes of a container in the format of "kubectl describe". */

#include <jansson.h>
#include <stdio.h>

/* One line for each probe that is set. */
void describe_probes(FILE *out, const json_t *container);
