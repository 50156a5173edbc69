/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The systemd slices of pods and QoS classes (cgroup driver systemd). systemd gets the values that
 * the cgroup files have, so that nothing changes when it writes them again. All requests are
 * asynchronous; with the driver cgroupfs they do nothing. */

#include "agent/bundle/resize.h"
#include "agent/pods/pod/pod-context.h"

/* Sets the pod's slice, with the limits of its current spec. May be repeated. */
void slices_set_pod(const PodContext *context, const Pod *pod);

/* To be called after bundle_resize_pod(): sets the pod's slice and the limits of running containers
 * to the values that were applied. */
void slices_resize(const PodContext *context, const Pod *pod, const RunningContainer *running,
                   size_t n_running);

/* Checks whether the pod's slice, or a parent, was stopped (systemctl stop), which kills its
 * containers and removes its limits; the runtime would then make systemd start it without limits.
 * True: it was stopped, the parents have been requested again, and slices_resize() is due. */
bool slices_restore_pod(const PodContext *context, const Pod *pod);

/* Stops the slice of a removed pod, with everything in it. */
void slices_stop(const PodContext *context, const char *group);

/* Sets the slices of the QoS classes. */
void slices_set_qos(const PodContext *context);

/* Removes empty cgroups of QoS classes, of either driver. 'all': there are no pods at all. */
void slices_remove_empty(const PodContext *context, bool all);
