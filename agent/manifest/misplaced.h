/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Fields in the wrong place: finds the object to which a key belongs that is unknown in its
 * place. */

#include "agent/manifest/decode-path.h"

enum {
        PLACES_SIZE = 512,
};

typedef struct FieldHome {
        const Schema *schema; /* of the object that the field belongs to; NULL: there are several */
        const char *noun;     /* "the pod's spec" */
        char places[PLACES_SIZE]; /* "spec.template.spec" */
} FieldHome;

/* True if the last key of a path, which the object there does not have, is one of an object nearby:
 * of the nearest ones, first those that pods consist of. */
bool find_field_home(const DecodePath *path, FieldHome *ret);

/* Whether the key is a field of a pod's spec next to the template's spec or in its metadata: then
 * the field's neighbours are in the wrong place as well, and the pod would be another one. */
bool is_misplaced_in_template(const DecodePath *path);
