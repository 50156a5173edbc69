/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Labels of Prometheus' text format. */

#include <stdio.h>

/* Writes name="value", the value escaped as the format demands, with '?' for each byte that is not
 * UTF-8, for which Prometheus refuses the whole page; NULL is empty. */
void write_prometheus_label(FILE *out, const char *name, const char *value);

/* The labels of a container, a pod or a group. NULL: a sample of this kind does not have the label;
 * "": it has no value, as a pod has no image. */
typedef struct ContainerLabels {
        const char *container, *id, *image, *name, *namespace, *pod, *pod_uid;
} ContainerLabels;

/* Writes them in their order, without the braces, with commas between them. */
void write_container_labels(FILE *out, const ContainerLabels *labels);
