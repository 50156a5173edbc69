/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The objects of metrics.k8s.io as metrics-server provides them (kubectl top), computed from the
 * kubelet's summary. Pure. */

#include <jansson.h>

#define METRICS_GROUP "metrics.k8s.io"

/* New arrays of PodMetrics and NodeMetrics, without kind and apiVersion; missing measurements are
 * omitted. NULL: out of memory. */
json_t *pod_metrics_of_summary(const json_t *summary);
json_t *node_metrics_of_summary(const json_t *summary);

/* The labels of objects by "<namespace>/<name>": a new object. */
json_t *list_labels(const json_t *objects);

/* Sets the labels of each metrics object. */
void set_labels(const json_t *metrics, const json_t *labels);
