/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Misplaced fields: for a key that is unknown at its position, finds the object to which it
 * belongs. */

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

/* True if the last key of a path, which the object at that path does not have, belongs to an object
 * nearby. If several are equally near, parts of pods are preferred. */
bool find_field_home(const DecodePath *path, FieldHome *ret);

/* Whether the key is a field of a pod's spec next to the template's spec or in its metadata: in
 * that case neighbouring fields are misplaced as well, and the resulting pod would be a different
 * one. */
bool is_misplaced_in_template(const DecodePath *path);
