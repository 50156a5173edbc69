/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Which pod may stand for which: a DaemonSet's pod that this node has made goes on as the one that
 * the set's controller has bound here, under its own name and UID, for these are in all that it
 * consists of. What it stands for is noted in an annotation, so that it outlives the agent. Pure
 * functions. */

#include "agent/model/edit.h"

extern const char covers_annotation[]; /* "<name>/<uid>" of the pod that is covered */

/* 'wanted', an API server's, as the one that runs goes on in its place: less what admission has
 * added, which no template says and a container could not get without being restarted. 1 with that
 * pod, which the caller frees; 0 where it takes more than 'limit' to make the one that runs it;
 * -ENOMEM. */
int cover_make(const Pod *running, const Pod *wanted, EditEffect limit, Pod **ret);

/* The UID of the pod for which this one stands; NULL: it stands for none. */
const char *cover_uid(const Pod *pod);

/* Its name, which the caller frees; NULL likewise, or where memory ends. */
char *cover_name(const Pod *pod);

/* The pod that a cover stands for, as far as that says it: its own spec is the server's to tell. 0
 * or -ENOMEM. */
int cover_restore(const Pod *cover, Pod **ret);
