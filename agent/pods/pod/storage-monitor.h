/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Measures the local ephemeral storage of pods with a limit (ephemeral-storage.c decides): a pod
 * that has written more is evicted. Every ten seconds, like in the kubelet, a child measures the
 * disk usage of the pod, and only of pods that have such a limit, while their containers run. */

#include "agent/pods/pod/pod-instance.h"

typedef struct StorageMonitor {
        const PodInstance *pod;
        /* The pod has exceeded a limit; the kubelet's message. */
        void (*on_exceeded)(const char *message, void *userdata);
        void *userdata;
        sd_event_source *timer;
        Child *child;
} StorageMonitor;

/* May be called at any time; the pod is measured while 'should_run'. */
void storage_monitor_step(StorageMonitor *monitor, bool should_run);
void storage_monitor_stop(StorageMonitor *monitor);
