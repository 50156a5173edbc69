/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The identity of an object among all others of its kind: its source, namespace, name and UID. A
 * UID alone proves nothing: anybody can write one into an owner reference, and the UIDs of
 * manifests can be computed. Objects to which a pod refers by name have an ObjectKey (object.h). */

#include "agent/model/pod.h"

/* Borrowed. */
typedef struct ObjectIdentity {
        ObjectSource source;
        const char *namespace;
        const char *name;
        const char *uid;
} ObjectIdentity;

ObjectIdentity object_identity(const ObjectMeta *metadata);

/* Whether all four are the same, and the source is known. */
bool object_identities_equal(const ObjectIdentity *a, const ObjectIdentity *b);

/* Whether both are the same object, from a known source. */
bool objects_are_same(const ObjectMeta *a, const ObjectMeta *b);

/* Whether both have the same namespace and name. They may still be different objects: for pods, the
 * source decides which one the node runs (pod_source_outranks()). */
bool objects_share_name(const ObjectMeta *a, const ObjectMeta *b);
bool objects_share_namespace(const ObjectMeta *a, const ObjectMeta *b);
int object_compare_name(const ObjectMeta *object, const char *namespace, const char *name);

/* Whether the object has this namespace and name, as given by a client or user. */
bool object_has_name(const ObjectMeta *object, const char *namespace, const char *name);

/* Only for objects of one source, or for running pods, whose UIDs are unique. */
bool object_has_uid(const ObjectMeta *object, const char *uid);
bool objects_share_uid(const ObjectMeta *a, const ObjectMeta *b);

/* Whether the object's controller is this DaemonSet of apps/v1: UID, name, namespace and source. */
bool object_is_controlled_by_daemonset(const ObjectMeta *object, const ObjectIdentity *set);
