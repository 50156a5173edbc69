/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The ConfigMaps, Secrets, RuntimeClasses, claims and volumes to which the API server's pods refer.
 * Each object is watched by name or, if the Node authorizer does not allow that, read. All are
 * cached on disk, so that a pod that has started before can start while the API server is
 * unreachable. */

#include "agent/apiserver/cache.h"
#include "agent/apiserver/connection-status.h"
#include "agent/apiserver/object-updates.h"
#include "agent/model/config.h"

#include <stdio.h>

typedef struct ReferencedObjects ReferencedObjects;

/* Borrowed. */
typedef struct ReferencedObjectsSpec {
        sd_event *event;
        const char *node_name;
        ApiServerCache *cache;
        ConnectionStatus *connection;
        const SharedObjects *shared; /* the server's shared objects are watched regardless of
                                      * references */
        ObjectUpdates *updates;
        void (*on_renewed)(void *userdata); /* see referenced_objects_renew_claims() */
        void *userdata;
} ReferencedObjectsSpec;

int referenced_objects_new(const ReferencedObjectsSpec *spec, ReferencedObjects **ret);
ReferencedObjects *referenced_objects_free(ReferencedObjects *objects);

/* The objects are watched starting with the next referenced_objects_add(). 0 or -errno. */
int referenced_objects_set_client(ReferencedObjects *objects, KubeClient *client);

/* Each recomputation of the desired pods adds all references again. When it ends, the objects
 * without references are forgotten and removed from the cache. */
int referenced_objects_begin(ReferencedObjects *objects);               /* 0 or -ENOMEM */
int referenced_objects_add(ReferencedObjects *objects, const Pod *pod); /* 0 or -ENOMEM */
void referenced_objects_end(ReferencedObjects *objects);

/* For a pod that this node has not run yet: the claims, volumes and attachments that are known
 * because of earlier pods are requested again by the next referenced_objects_add(), because in the
 * meantime a user may have created another claim with that name, or bound the volume to another
 * claim. 'on_renewed' is called for each response. 0 or -ENOMEM. */
int referenced_objects_renew_claims(ReferencedObjects *objects, const Pod *pod);

/* Whether a response to these requests is still missing. */
bool referenced_objects_awaits_claims(ReferencedObjects *objects, const Pod *pod);

/* The object, or NULL, which is also returned for keys of other sources; also reports whether the
 * existence of the object is not known yet. */
const DataObject *referenced_objects_find(const ReferencedObjects *objects, const ObjectKey *key);
bool referenced_objects_is_pending(const ReferencedObjects *objects, const ObjectKey *key);

/* Requests a claim again, and its volume if the claim has changed. */
void referenced_objects_refresh(ReferencedObjects *objects, const ObjectKey *key);

/* Takes an object from the response to another request of this node. */
void referenced_objects_take(ReferencedObjects *objects, const ObjectKey *key, const char *json,
                             size_t length);

/* Prints names and reflectors, not contents, for `mainstay debug dump`. */
void referenced_objects_dump(const ReferencedObjects *objects, FILE *out);

/* The cache can now be decrypted: objects that are still unknown are read from it again. */
void referenced_objects_reload_cached(ReferencedObjects *objects);

/* The cache belongs to another cluster. To be called before there is a client. */
void referenced_objects_forget_cached(ReferencedObjects *objects);
