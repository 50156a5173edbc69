/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The edit of a running pod: which changes of its manifest can be applied in place, which restart a
 * container, which replace the pod. Pure functions; pods/ acts on an EditPlan, "mainstay diff"
 * prints it. */

#include "agent/model/pod.h"

typedef enum EditEffect {
        EDIT_NONE,              /* no action */
        EDIT_IN_PLACE,          /* applied to the running container */
        EDIT_RESTART_CONTAINER, /* the container restarts */
        EDIT_RECREATE_POD,      /* a new pod replaces this one */
        N_EDIT_EFFECTS,
} EditEffect;

/* One changed field. */
typedef struct EditChange {
        EditEffect effect;
        char *container; /* the container that has the field; NULL: the pod */
        char *path;      /* "spec.hostNetwork"; or "image" for a container */
        char *from;      /* old value of a scalar field, "" if it was absent; NULL for other fields
                          */
        char *to;
} EditChange;

typedef struct EditPlan {
        EditEffect effect; /* the strongest of all changes */
        LIST_OF(EditChange) changes;
} EditPlan;

/* Both pods have defaults applied. Fields that the agent sets itself (UID, the kubelet's
 * annotations) are not compared. 0 or -ENOMEM. */
int edit_plan_make(const Pod *running, const Pod *desired, EditPlan *ret);
void edit_plan_done(EditPlan *plan);

/* The strongest effect on the container with that name; changes of the pod itself do not count. */
EditEffect edit_plan_container_effect(const EditPlan *plan, const char *container);

/* "image (a -> b), env": the changes with this effect, of the container or of the pod (NULL). The
 * caller frees it; NULL: out of memory. */
char *edit_plan_format(const EditPlan *plan, EditEffect effect, const char *container);

/* If both pods refer to the same class and that class no longer exists, copies the values that it
 * had when 'running' started. 0 or -ENOMEM. */
int edit_inherit_class_values(const Pod *running, Pod *desired);

/* Gives the desired pod the identity of the running one (name and UID) and its ephemeral
 * containers, so that the desired pod can become its spec. 0 or -ENOMEM. */
int edit_inherit_pod_identity(const Pod *running, Pod *desired);
