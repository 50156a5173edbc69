/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Callbacks by which the agent's inputs become wishes; 'userdata' is the Agent. */

#include "agent/model/daemonset.h"

/* All good manifests are wished for, their DaemonSets are decided on, then an API server's pods;
 * who is not named is swept. */
void recompute_desired_pods(void *userdata);

/* The same, once there has been a first time. */
void recompute_desired_pods_if_scanned(void *userdata);

/* A record of an earlier agent: whoever wanted the pod goes on wanting it until he can say. */
void restore_desired_pod(const char *file, const Pod *pod, void *userdata);
int restore_desired_daemonset(const char *origin, const DaemonSet *set, void *userdata);
