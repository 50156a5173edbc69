/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Labels of Prometheus' text format. */

#include <stdio.h>

/* Writes name="value". The value is escaped as required, with '?' for each invalid UTF-8 byte,
 * because Prometheus would refuse the whole page; NULL is written as an empty value. */
void write_prometheus_label(FILE *out, const char *name, const char *value);

/* The labels of a container, a pod or a group. NULL: samples of this kind do not have the label;
 * "": it has no value, like the image of a pod. */
typedef struct ContainerLabels {
        const char *container, *id, *image, *name, *namespace, *pod, *pod_uid;
} ContainerLabels;

/* Writes the labels in order, separated by commas, without the braces. */
void write_container_labels(FILE *out, const ContainerLabels *labels);
