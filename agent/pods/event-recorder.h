/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What happened to a pod, told to whoever keeps events. Reasons and sentences are the kubelet's, so
 * that people and tools know them. The same thing may be said as often as it happens: whoever keeps
 * the events counts them. */

#include "agent/model/event.h"

typedef struct PodWorker PodWorker;

/* 'container' is the container's name, or NULL where it is about the pod as a whole. Costs little,
 * copies all, never fails. */
void record_pod_event(const PodWorker *worker, const char *container, PodEventKind kind,
                      const char *reason, const char *format, ...) printf_like(5, 6);
