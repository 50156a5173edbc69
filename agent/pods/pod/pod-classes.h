/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* PriorityClasses and RuntimeClasses, as admission would apply them: a pod has the priority and the
 * overhead of the classes that it names. Removing a class does not change the pods that use it. */

#include "agent/model/object.h"
#include "agent/model/pod.h"

/* The OCI runtimes of a node. Borrowed. */
typedef struct OciRuntimes {
        const char *path;          /* for pods without a class */
        const StringMap *handlers; /* for RuntimeClasses: path or name by handler */
} OciRuntimes;

/* Fills in priority, priorityClassName if the pod names none, and overhead: from the existing
 * classes, otherwise from 'running', the running version of the same pod, or NULL. 0 or -ENOMEM. */
int resolve_pod_classes(const ObjectLookup *lookup, const Pod *running, Pod *pod);

/* The same in a shallow copy, which borrows all its members and must not be freed. False: nothing
 * differs from 'pod'. */
bool borrow_class_values(const ObjectLookup *lookup, const Pod *running, const Pod *pod, Pod *ret);

/* Checks that the classes that the pod names exist, and determines its runtime. -ENOENT with a
 * message: the pod has to wait. */
int check_pod_classes(const ObjectLookup *lookup, const OciRuntimes *runtimes, const Pod *pod,
                      const char **ret_runtime, Error *reterr);
