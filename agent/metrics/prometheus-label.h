/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Labels of Prometheus' text format. */

#include <stdio.h>

/* Writes name="value", the value escaped as the format demands; NULL is empty. */
void write_prometheus_label(FILE *out, const char *name, const char *value);
