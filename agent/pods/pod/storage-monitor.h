/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Measures the local ephemeral storage of pods with a limit (ephemeral-storage.c decides): a pod
 * that exceeds it is evicted. Every ten seconds, as in the kubelet, a child measures the disk usage
 * of a pod, but only if the pod has such a limit and while its containers run. */

#include "agent/pods/pod/pod-instance.h"

typedef struct StorageMonitor {
        const PodInstance *pod;
        /* The pod has exceeded a limit; 'message' is the kubelet's. */
        void (*on_exceeded)(const char *message, void *userdata);
        void *userdata;
        sd_event_source *timer;
        Child *child;
} StorageMonitor;

/* May be called at any time; the pod is measured as long as 'should_run' is true. */
void storage_monitor_step(StorageMonitor *monitor, bool should_run);
void storage_monitor_stop(StorageMonitor *monitor);
