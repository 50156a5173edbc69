/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What it takes to make a pod that runs the one that its manifest now says: an EditPlan. Pure
 * functions; supervise/ acts on plans, "mainstay diff" prints them. */

#include "agent/model/pod.h"

typedef enum EditEffect {
        EDIT_NONE,    /* nothing to do */
        EDIT_LIVE,    /* applied to what runs */
        EDIT_RESTART, /* its container restarts, alone */
        EDIT_REPLACE, /* another pod comes in the place of this one */
        N_EDIT_EFFECTS,
} EditEffect;

/* One field that is another. */
typedef struct EditChange {
        EditEffect effect;
        char *container; /* whose field it is; NULL: the pod's */
        char *path;      /* "spec.hostNetwork"; "image" of a container */
        char *from;      /* of a field that holds one word, else NULL; "" where it was absent */
        char *to;
} EditChange;

typedef struct EditPlan {
        EditEffect effect; /* the greatest */
        LIST_OF(EditChange) changes;
} EditPlan;

/* Both are defaulted. What an agent adds to a pod by itself (UID, the kubelet's annotations) is not
 * compared. 0 or -ENOMEM. */
int edit_plan(const Pod *running, const Pod *wanted, EditPlan *ret);
void edit_plan_done(EditPlan *plan);

/* The greatest effect on the container of that name; the pod's own changes are not looked at. */
EditEffect edit_plan_of_container(const EditPlan *plan, const char *container);

/* "image (a -> b), env": the changes of one effect, of one container or of the pod (NULL). The
 * caller frees it; NULL where memory ends. */
char *edit_plan_print(const EditPlan *plan, EditEffect effect, const char *container);

/* What a class gives that both name, and that is not known, is what it gave when 'running' began. 0
 * or -ENOMEM. */
int edit_assume_classes(const Pod *running, Pod *wanted);

/* Gives a wanted pod the identity of the one that runs, so that it can be put in its place. 0 or
 * -ENOMEM. */
int edit_keep_identity(const Pod *running, Pod *wanted);
