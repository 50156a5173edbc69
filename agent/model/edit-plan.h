/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What it takes to make a pod that runs the one that its manifest now says: an EditPlan. Pure
 * functions; supervise/ acts on plans, "mainstay diff" prints them. */

#include "agent/model/pod.h"

typedef enum EditEffect {
        EDIT_NONE,              /* nothing to do */
        EDIT_IN_PLACE,          /* applied to what runs */
        EDIT_RESTART_CONTAINER, /* its container restarts, alone */
        EDIT_RECREATE_POD,      /* another pod comes in the place of this one */
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
int edit_plan_make(const Pod *running, const Pod *desired, EditPlan *ret);
void edit_plan_done(EditPlan *plan);

/* The greatest effect on the container of that name; the pod's own changes are not looked at. */
EditEffect edit_plan_container_effect(const EditPlan *plan, const char *container);

/* "image (a -> b), env": the changes of one effect, of one container or of the pod (NULL). The
 * caller frees it; NULL where memory ends. */
char *edit_plan_format(const EditPlan *plan, EditEffect effect, const char *container);

/* What a class gives that both name, and that is not known, is what it gave when 'running' began. 0
 * or -ENOMEM. */
int edit_inherit_class_values(const Pod *running, Pod *desired);

/* Gives a wanted pod the identity of the one that runs, so that it can be put in its place. 0 or
 * -ENOMEM. */
int edit_inherit_pod_identity(const Pod *running, Pod *desired);
