/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Adoption: decides which running pod can continue as which pod of the API server. A DaemonSet pod
 * that this node has created continues as the pod that the set's controller has bound to the node,
 * but under its own name and UID, because cgroups, paths and container IDs contain them. The
 * adopted pod is recorded in an annotation, so that the adoption survives the agent. Pure
 * functions. */

#include "agent/model/edit-plan.h"

/* Converts 'desired', a pod of an API server, into the form in which the running pod can continue
 * in its place: without the additions of admission, which no template contains and which a
 * container could get only by a restart. 1 with that pod, which the caller frees; 0 if making the
 * running pod equal needs more than 'limit'; -ENOMEM. */
int pod_adoption_make(const Pod *running, const Pod *desired, EditEffect limit, Pod **ret);

/* The UID of the API server's pod that this pod has adopted; NULL: none. */
const char *pod_adoption_api_uid(const Pod *pod);

/* The name of that pod, which the caller frees; NULL: none, or out of memory. */
char *pod_adoption_api_name(const Pod *pod);

/* The API server's pod that an adopting pod represents, with the data in the annotation; only the
 * server has the spec of that pod. 0 or -ENOMEM. */
int pod_adoption_restore_api_pod(const Pod *adopted, Pod **ret);
