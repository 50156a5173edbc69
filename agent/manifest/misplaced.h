/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Misplaced fields: finds the object to which a key belongs that is unknown where it is. */

#include "agent/manifest/decode-path.h"

enum {
        PLACES_SIZE = 512,
};

typedef struct FieldHome {
        const Schema *schema; /* schema of the object to which the field belongs; NULL: there are
                               * several */
        const char *noun;     /* "the pod's spec" */
        char places[PLACES_SIZE]; /* "spec.template.spec" */
} FieldHome;

/* True if the last key of a path, which the object there does not have, belongs to an object
 * nearby: of the nearest ones, those that pods consist of come first. */
bool find_field_home(const DecodePath *path, FieldHome *ret);

/* Whether the key is a field of a pod's spec next to the template's spec or in its metadata: then
 * neighbouring fields are misplaced as well, and the resulting pod would be a different one. */
bool is_misplaced_in_template(const DecodePath *path);
