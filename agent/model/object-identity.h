/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The identity of an object among all others of its kind: its source, namespace, name and UID. A
 * UID alone proves nothing: everybody may write one into an owner reference, and those of manifests
 * can be computed. Objects to which a pod refers by name have an ObjectKey (object.h). */

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

/* The same object, of a source that is known. */
bool objects_are_same(const ObjectMeta *a, const ObjectMeta *b);

/* Both would have one name. An equal name does not make them one object: for pods, the source
 * decides which one the node runs (pod_source_outranks()). */
bool objects_share_name(const ObjectMeta *a, const ObjectMeta *b);
bool objects_share_namespace(const ObjectMeta *a, const ObjectMeta *b);
int object_compare_name(const ObjectMeta *object, const char *namespace, const char *name);

/* By the words of a client, or of a user. */
bool object_has_name(const ObjectMeta *object, const char *namespace, const char *name);

/* For objects of one source, or running pods, whose UIDs are unique. */
bool object_has_uid(const ObjectMeta *object, const char *uid);
bool objects_share_uid(const ObjectMeta *a, const ObjectMeta *b);

/* The object's controller is this DaemonSet of apps/v1: UID, name, namespace and source. */
bool object_is_controlled_by_daemonset(const ObjectMeta *object, const ObjectIdentity *set);
