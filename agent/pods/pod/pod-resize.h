/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* In-place resize of a pod (InPlacePodVerticalScaling; condition PodResizeInProgress, never
 * PodResizePending): applies the requests and limits of the spec to its cgroups and its systemd
 * slice. Values that the kernel refuses, such as a memory limit below the usage, are retried. */

#include "agent/bundle/resize.h"
#include "agent/pods/pod/pod-instance.h"

typedef struct PodResize {
        const PodInstance *pod;
        void (*on_retry)(void *userdata); /* a retry of the resize is due */
        void *userdata;
        char *error; /* why the cgroups do not match the spec; or NULL */
        sd_event_source *timer;
        uint64_t delay_usec;
} PodResize;

/* Applies the spec, for the pod and its running containers. */
void pod_resize_apply(PodResize *resize, const RunningContainer *running, size_t n);

/* The spec has changed: the back-off starts again with a short delay. */
void pod_resize_reset_back_off(PodResize *resize);
void pod_resize_done(PodResize *resize);
