/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The resourceVersions of the objects of one resource. The agent's objects have none: an object
 * that is seen with other content than before gets the next version. Pure. */

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

enum {
        OBJECT_VERSIONS_MAX = 4096, /* then the oldest is forgotten */
};

typedef struct ObjectVersions ObjectVersions;

/* Versions are greater than 'start'. NULL: out of memory. */
ObjectVersions *object_versions_new(uint64_t start);
ObjectVersions *object_versions_free(ObjectVersions *versions);

/* The latest version that was given. */
uint64_t object_versions_latest(const ObjectVersions *versions);

/* True if the changes since then are known. */
bool object_versions_reach(const ObjectVersions *versions, uint64_t since);

/* An object as it is now; its metadata.resourceVersion is set. Its version, and 'ret_created' if it
 * has appeared; 0: out of memory. */
uint64_t object_versions_observe(ObjectVersions *versions, json_t *object, uint64_t *ret_created);

/* The same for an object that is gone. */
uint64_t object_versions_observe_deleted(ObjectVersions *versions, json_t *object);

/* All objects as they are now: those that are not in the array are gone. */
void object_versions_observe_all(ObjectVersions *versions, const json_t *objects);

/* Likewise; 'present' has the keys of those that are there as members. */
void object_versions_keep_only(ObjectVersions *versions, const json_t *present);

/* The objects that existed at 'since' and are gone, without more than their metadata; a new array.
 */
json_t *object_versions_list_deleted(const ObjectVersions *versions, uint64_t since);

/* The identity of an object among those of its resource; NULL: out of memory. The caller frees it.
 */
char *object_key(const json_t *object);
