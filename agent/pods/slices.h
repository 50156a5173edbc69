/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* systemd is told what we want in the groups of pods, where it is the one that keeps them: what
 * stands in a group's files and what systemd knows of its slice are then the same, whatever makes
 * it write them again. All of it is asked for and not waited for; for groups that are no slices all
 * of it does nothing. */

#include "agent/bundle/resize.h"
#include "agent/pods/pod-context.h"

/* The pod's slice, with its limits as they are in its spec now. May be said again. */
void slices_set_pod(const PodContext *context, const Pod *pod);

/* After bundle_resize_pod(): the pod's slice and the limits of containers that run, as far as that
 * could make them what is in the spec now. */
void slices_resize(const PodContext *context, const Pod *pod, const RunningContainer *running,
                   size_t n_running);

/* Somebody may have stopped the pod's slice, or one above it, which ends the containers in it and
 * takes its limits away; the runtime has systemd start it again without any, or systemd does not
 * know the one above any more. True: that was so, those above are asked for, and slices_resize() is
 * due. */
bool slices_restore_pod(const PodContext *context, const Pod *pod);

/* The slice of a group whose pod will not be again, and all that is in it. */
void slices_stop(const PodContext *context, const char *group);

/* The slices above those of pods. */
void slices_set_qos(const PodContext *context);

/* Groups above those of pods that nobody is in, of either driver. 'all': there is no pod at all. */
void slices_remove_empty(const PodContext *context, bool all);
