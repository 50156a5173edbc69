/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The systemd slices of pods and QoS classes (cgroup driver systemd). systemd gets the same values
 * as the files of the cgroups, so that both agree whenever it writes them again. All requests are
 * asynchronous; with the driver cgroupfs they do nothing. */

#include "agent/bundle/resize.h"
#include "agent/pods/pod/pod-context.h"

/* Sets the pod's slice, with the limits of its present spec. May be repeated. */
void slices_set_pod(const PodContext *context, const Pod *pod);

/* After bundle_resize_pod(): sets the pod's slice and the limits of running containers, as far as
 * that could apply them. */
void slices_resize(const PodContext *context, const Pod *pod, const RunningContainer *running,
                   size_t n_running);

/* The pod's slice, or a parent of it, may have been stopped (systemctl stop), which kills its
 * containers and removes its limits; the runtime then has systemd start it without limits. True: it
 * was, the parents are requested, and slices_resize() is due. */
bool slices_restore_pod(const PodContext *context, const Pod *pod);

/* Stops the slice of a removed pod, with all that is in it. */
void slices_stop(const PodContext *context, const char *group);

/* Sets the slices of the QoS classes. */
void slices_set_qos(const PodContext *context);

/* Removes empty cgroups of QoS classes, of either driver. 'all': there is no pod at all. */
void slices_remove_empty(const PodContext *context, bool all);
