/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/model/object-identity.h"

#include "common/macros.h"

ObjectIdentity object_identity(const ObjectMeta *metadata) {
        return (ObjectIdentity){ metadata->source, metadata->namespace, metadata->name,
                                 metadata->uid };
}

bool object_identities_equal(const ObjectIdentity *a, const ObjectIdentity *b) {
        return object_sources_match(a->source, b->source) &&
               streq_ptr(a->namespace, b->namespace) && streq_ptr(a->name, b->name) &&
               streq_ptr(a->uid, b->uid);
}

bool object_is_controlled_by_daemonset(const ObjectMeta *object, const ObjectIdentity *set) {
        const ObjectIdentity owner = {
                .source = object->source,
                .namespace = object->namespace,
                .name = object_is_of_daemonset(object) ? object_controller(object)->name : NULL,
                .uid = object_is_of_daemonset(object) ? object_controller(object)->uid : NULL,
        };

        return owner.uid && object_identities_equal(&owner, set);
}
