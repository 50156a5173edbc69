/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Labels of Prometheus' text format. */

#include <stdio.h>

/* Writes name="value", the value escaped as the format demands, with '?' for each byte that is not
 * UTF-8, for which Prometheus refuses the whole page; NULL is empty. */
void write_prometheus_label(FILE *out, const char *name, const char *value);
