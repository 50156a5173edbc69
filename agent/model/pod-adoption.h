/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Adoption: which running pod may continue as which pod of the API server. A DaemonSet pod that
 * this node has made continues as the one that the set's controller has bound to the node, under
 * its own name and UID, because cgroup, paths and container IDs are made of these. The adopted pod
 * is recorded in an annotation, so that it survives the agent. Pure functions. */

#include "agent/model/edit-plan.h"

/* 'desired', a pod of an API server, in the form in which the running pod can continue in its
 * place: without the additions of admission, which no template has and which a container could only
 * get by a restart. 1 with that pod, which the caller frees; 0 if making the running pod equal
 * needs more than 'limit'; -ENOMEM. */
int pod_adoption_make(const Pod *running, const Pod *desired, EditEffect limit, Pod **ret);

/* The UID of the API server's pod that this one adopted; NULL: none. */
const char *pod_adoption_api_uid(const Pod *pod);

/* Its name, which the caller frees; NULL if there is none, or out of memory. */
char *pod_adoption_api_name(const Pod *pod);

/* The API server's pod behind an adopting one, as far as the annotation describes it: its own spec
 * is known to the server only. 0 or -ENOMEM. */
int pod_adoption_restore_api_pod(const Pod *adopted, Pod **ret);
