/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Changed ConfigMaps, Secrets, RuntimeClasses, services and tokens of the API server, collected
 * until the end of the loop's turn. Then the pods that refer to them update their volumes, or
 * start.
 */

#include "agent/model/object.h"
#include "agent/model/pod.h"

#include <systemd/sd-event.h>

typedef struct ObjectUpdates ObjectUpdates;

/* 'on_due' is called once per turn of the loop in which something changed; it calls
 * object_updates_concern() for each pod. Afterwards the collection is emptied. */
int object_updates_new(sd_event *event, void (*on_due)(void *userdata), void *userdata,
                       ObjectUpdates **ret);
ObjectUpdates *object_updates_free(ObjectUpdates *updates);

/* 'which': the key of an object, or the UID of a pod with a new token; NULL: anything. */
void object_updates_schedule(ObjectUpdates *updates, const char *which);

/* Whether an object that the pod refers to has changed. */
bool object_updates_concern(const ObjectUpdates *updates, const Pod *pod);

/* "configmap_default_settings", which is also the name of the cache file: the cache only contains
 * objects of the API server. */
int object_key_format(const ObjectKey *key, char **ret);
