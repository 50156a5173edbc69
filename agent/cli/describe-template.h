/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A pod template for people: what kubectl shows below a DaemonSet and of a revision. */

#include <jansson.h>
#include <stdio.h>

/* "Labels:  a=b", one pair a line; "<none>" where there is none. 'indent' stands before each line.
 */
void describe_map(const char *title, json_t *map, const char *indent, FILE *out);

/* "Pod Template:" and what is in it. */
void describe_template(const json_t *template, FILE *out);
