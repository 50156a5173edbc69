/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Which pod may stand for which: a DaemonSet's pod that this node has made goes on as the one that
 * the set's controller has bound here, under its own name and UID, for these are in all that it
 * consists of. What it stands for is noted in an annotation, so that it outlives the agent. Pure
 * functions. */

#include "agent/model/edit-plan.h"

extern const char adopted_pod_annotation[]; /* "<name>/<uid>" of the pod that is covered */

/* 'wanted', an API server's, as the one that runs goes on in its place: less what admission has
 * added, which no template says and a container could not get without being restarted. 1 with that
 * pod, which the caller frees; 0 where it takes more than 'limit' to make the one that runs it;
 * -ENOMEM. */
int pod_adoption_make(const Pod *running, const Pod *desired, EditEffect limit, Pod **ret);

/* The UID of the pod for which this one stands; NULL: it stands for none. */
const char *pod_adoption_api_uid(const Pod *pod);

/* Its name, which the caller frees; NULL likewise, or where memory ends. */
char *pod_adoption_api_name(const Pod *pod);

/* The pod that a cover stands for, as far as that says it: its own spec is the server's to tell. 0
 * or -ENOMEM. */
int pod_adoption_restore_api_pod(const Pod *adopted, Pod **ret);
