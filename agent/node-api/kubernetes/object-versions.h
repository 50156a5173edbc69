/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The resourceVersions of the objects of one resource. The agent's objects have none: an object
 * whose content differs from the last observation gets the next version. Pure. */

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

enum {
        OBJECT_VERSIONS_MAX = 4096, /* beyond this, the oldest is forgotten */
};

typedef struct ObjectVersions ObjectVersions;

/* Versions are greater than 'start'. NULL: out of memory. */
ObjectVersions *object_versions_new(uint64_t start);
ObjectVersions *object_versions_free(ObjectVersions *versions);

/* The latest version that was assigned. */
uint64_t object_versions_latest(const ObjectVersions *versions);

/* Whether the changes since then are known. */
bool object_versions_reach(const ObjectVersions *versions, uint64_t since);

/* Observes the current state of an object; sets its metadata.resourceVersion. Returns its version,
 * and 'ret_created' if it is new; 0: out of memory. */
uint64_t object_versions_observe(ObjectVersions *versions, json_t *object, uint64_t *ret_created);

/* The same for a deleted object. */
uint64_t object_versions_observe_deleted(ObjectVersions *versions, json_t *object);

/* Observes the current state of all objects: those that are not in the array have been deleted. */
void object_versions_observe_all(ObjectVersions *versions, const json_t *objects);

/* The same, but the keys of the existing objects are the members of 'present'. */
void object_versions_keep_only(ObjectVersions *versions, const json_t *present);

/* The objects that existed at 'since' and were deleted, with only their metadata; a new array.
 */
json_t *object_versions_list_deleted(const ObjectVersions *versions, uint64_t since);

/* The identity of an object among those of its resource; NULL: out of memory. The caller frees it.
 */
char *object_key(const json_t *object);
