/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* In-place resize of a pod (InPlacePodVerticalScaling; condition PodResizeInProgress, never
 * PodResizePending): its cgroups and its systemd slice follow the requests and limits of the spec.
 * Values that the kernel refuses, such as a memory limit below the usage, are tried again. */

#include "agent/bundle/resize.h"
#include "agent/pods/pod/pod-instance.h"

typedef struct PodResize {
        const PodInstance *pod;
        void (*on_retry)(void *userdata); /* the resize is due again */
        void *userdata;
        char *error; /* why the cgroups do not match the spec; or NULL */
        sd_event_source *timer;
        uint64_t delay_usec;
} PodResize;

/* Applies the spec, for the pod and the containers that run. */
void pod_resize_apply(PodResize *resize, const RunningContainer *running, size_t n);

/* The spec has changed: a retry starts with a short delay again. */
void pod_resize_reset_back_off(PodResize *resize);
void pod_resize_done(PodResize *resize);
