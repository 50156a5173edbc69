/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A v1.Event as it goes to the server. Pure. */

#include "common/macros.h"

#include <stdint.h>

typedef struct EventObject {
        char *namespace;
        char *name;  /* fit for the API, however long the pod's is */
        char *pod;   /* the UID of what it is about */
        char *body;  /* that creates it */
        char *patch; /* that counts it up: a strategic merge patch */
        uint64_t count;
} EventObject;

/* 0, -EBADMSG for what is no Event, -ENOMEM. */
int event_object_parse(const char *json, EventObject *ret);
void event_object_done(EventObject *object);

/* The event of the object of that UID as one of another object's, under a name of its own: by the
 * former one the server knows what was said before. The caller frees it. NULL: it is of none such,
 * or memory ends. */
char *event_object_retarget(const char *json, const char *from_uid, const char *name,
                            const char *uid);
