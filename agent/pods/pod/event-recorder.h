/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Records events (v1.Event) of a pod, with the kubelet's reasons and messages, so that users and
 * tools recognize them. An event may be recorded each time it happens: the event store counts
 * repetitions. */

#include "agent/pods/pod/pod-instance.h"

/* 'container' is the name of the container, or NULL: the event is about the whole pod. Copies its
 * arguments, never fails. */
void record_pod_event(const PodInstance *instance, const char *container, PodEventKind kind,
                      const char *reason, const char *format, ...) printf_like(5, 6);
