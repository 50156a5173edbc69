/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The effect of an edit plan (model/edit-plan.h) on a running pod: its log lines and events, and
 * whether cgroups must be updated. */

#include "agent/model/edit-plan.h"
#include "agent/pods/pod/pod-instance.h"

/* Logs the changes that have this effect, and records the kubelet's event. 'container' is NULL for
 * changes of the pod as a whole. */
void report_pod_edit(const PodInstance *pod, const EditPlan *plan, EditEffect effect,
                     const char *container);

/* Whether requests, limits or overhead change; for any container if 'container' is NULL. */
bool edit_changes_resources(const EditPlan *plan, const char *container);

/* Why the plan replaces the pod: the changes that require it. The caller frees it; NULL: out of
 * memory. */
char *edit_print_replace_reasons(const EditPlan *plan);
