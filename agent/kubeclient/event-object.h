/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A v1.Event as it is sent to the API server: names, body and patch. Pure. */

#include "common/macros.h"

#include <stdint.h>

typedef struct EventObject {
        char *namespace;
        char *name;  /* short enough for the API */
        char *pod;   /* the UID of the event's object */
        char *body;  /* body of the request that creates it */
        char *patch; /* a strategic merge patch that sets the count */
        uint64_t count;
} EventObject;

/* 0; -EBADMSG for JSON that is not an Event; -ENOMEM. */
int event_object_parse(const char *json, EventObject *ret);
void event_object_done(EventObject *object);

/* Converts an event about the object with 'from_uid' to an event about the object 'name', 'uid',
 * with a separate name. The caller frees it. NULL: the event is about another object, or out of
 * memory. */
char *event_object_retarget(const char *json, const char *from_uid, const char *name,
                            const char *uid);
