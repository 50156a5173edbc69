/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/model/object-identity.h"

#include "common/macros.h"

ObjectIdentity object_identity(const ObjectMeta *metadata) {
        return (ObjectIdentity){ metadata->source, metadata->namespace, metadata->name,
                                 metadata->uid };
}

bool object_identities_equal(const ObjectIdentity *a, const ObjectIdentity *b) {
        /* The UID comes first, because it decides most of the thousands of comparisons. */
        return streq_ptr(a->uid, b->uid) && streq_ptr(a->name, b->name) &&
               streq_ptr(a->namespace, b->namespace) && object_sources_match(a->source, b->source);
}

bool objects_are_same(const ObjectMeta *a, const ObjectMeta *b) {
        ObjectIdentity left = object_identity(a), right = object_identity(b);

        return object_identities_equal(&left, &right);
}

int object_compare_name(const ObjectMeta *object, const char *namespace, const char *name) {
        int r = strcmp(object->namespace, namespace);

        return r != 0 ? r : strcmp(object->name, name);
}

bool object_has_name(const ObjectMeta *object, const char *namespace, const char *name) {
        return streq_ptr(object->name, name) && streq_ptr(object->namespace, namespace);
}

bool objects_share_name(const ObjectMeta *a, const ObjectMeta *b) {
        return object_has_name(a, b->namespace, b->name);
}

bool objects_share_namespace(const ObjectMeta *a, const ObjectMeta *b) {
        return streq_ptr(a->namespace, b->namespace);
}

bool object_has_uid(const ObjectMeta *object, const char *uid) {
        return uid && streq_ptr(object->uid, uid);
}

bool objects_share_uid(const ObjectMeta *a, const ObjectMeta *b) {
        return object_has_uid(a, b->uid);
}

bool object_is_controlled_by_daemonset(const ObjectMeta *object, const ObjectIdentity *set) {
        const OwnerReference *controller = object_controlling_daemonset(object);
        ObjectIdentity owner;

        if (!controller || !controller->uid)
                return false;
        owner = (ObjectIdentity){ object->source, object->namespace, controller->name,
                                  controller->uid };
        return object_identities_equal(&owner, set);
}
