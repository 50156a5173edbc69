/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The effect of an edit plan (model/edit-plan.h) on a running pod: its log lines and events, and
 * whether cgroups must follow. */

#include "agent/model/edit-plan.h"
#include "agent/pods/pod/pod-instance.h"

/* Logs the changes that have this effect, and records the kubelet's event. 'container' is NULL for
 * those of the pod as a whole. */
void report_pod_edit(const PodInstance *pod, const EditPlan *plan, EditEffect effect,
                     const char *container);

/* Requests, limits or overhead change; of any container if 'container' is NULL. */
bool edit_changes_resources(const EditPlan *plan, const char *container);

/* Why the plan replaces the pod: the changes that it takes, in memory that the caller frees, or
 * NULL. */
char *edit_print_replace_reasons(const EditPlan *plan);
