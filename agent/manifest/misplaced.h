/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Fields in the wrong place: which object a key belongs to that is unknown where it is. */

#include "agent/model/schema.h"

typedef struct FieldHome {
        const Schema *schema; /* of the object that the field belongs to */
        const char *noun;     /* "the pod's spec" */
        const char *place;    /* "spec.template.spec" */
        bool is_error;        /* in the agent, too: the field's neighbours are in the wrong place as
                                 well, and the object would be about something else */
} FieldHome;

/* True if a key that 'schema' does not have is one of a related object; 'in_template' is whether
 * the object is a part of a pod template. */
bool find_field_home(const Schema *schema, const char *key, bool in_template, FieldHome *ret);
