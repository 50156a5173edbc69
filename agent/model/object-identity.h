/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What tells one object of a kind from all others: its source, namespace, name and UID. A UID alone
 * proves nothing: everybody may write one into an owner reference, and those of manifests can be
 * computed. Objects to which a pod refers by name have an ObjectKey (object.h). */

#include "agent/model/pod.h"

/* Borrowed. */
typedef struct ObjectIdentity {
        ObjectSource source;
        const char *namespace;
        const char *name;
        const char *uid;
} ObjectIdentity;

ObjectIdentity object_identity(const ObjectMeta *metadata);

/* All four are the same, and the source is known. */
bool object_identities_equal(const ObjectIdentity *a, const ObjectIdentity *b);

/* The object's controller is this DaemonSet of apps/v1: UID, name, namespace and source. */
bool object_is_controlled_by_daemonset(const ObjectMeta *object, const ObjectIdentity *set);
