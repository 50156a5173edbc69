/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A pod template in the format of kubectl, for a DaemonSet or a revision. */

#include <jansson.h>
#include <stdio.h>

/* "Labels:  a=b", one pair per line; "<none>" if there are none. 'indent' precedes each line. */
void describe_map(const char *title, json_t *map, const char *indent, FILE *out);

/* "Pod Template:" and its content. */
void describe_template(const json_t *template, FILE *out);
