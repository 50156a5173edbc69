/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Follows a collection of the API server: list in chunks, then watch with bookmarks, again from
 * where it broke off, for ever. No initial events by watch: an older etcd refuses them. What ends a
 * watch (410, an ERROR event, a resourceVersion that goes back) makes a new list, after a back-off
 * with jitter; a watch that merely closes goes on from its last resourceVersion.
 *
 * A list is told as begin, each object, end. Only a complete list is evidence that something is not
 * there: one that breaks off is told as broken, and nothing may be concluded from it. */

#include "agent/kubeclient/client.h"

typedef struct KubeReflector KubeReflector;

typedef enum KubeWatchEvent {
        KUBE_LISTED, /* in a list */
        KUBE_ADDED,  /* by the watch */
        KUBE_MODIFIED,
        KUBE_DELETED, /* the object as it was last */
        N_KUBE_WATCH_EVENTS,
} KubeWatchEvent;

typedef struct KubeReflectorSpec {
        KubeClient *client;
        const char *path;   /* "/api/v1/pods" */
        const char *query;  /* "fieldSelector=spec.nodeName%3Dnode1", escaped; NULL: none */
        unsigned page_size; /* objects a request of a list; 0: 500 */

        /* 'json' has a NUL after it and is one object, though it may be a bad one. */
        void (*on_object)(KubeWatchEvent event_type, const char *json, size_t length,
                          void *userdata);
        void (*on_list_begin)(void *userdata);
        void (*on_list_end)(bool is_complete, void *userdata);
        /* When it is another; 'error' stands until a list or watch succeeds, then it is NULL;
         * 'status' of HTTP. */
        void (*on_error)(const char *error, unsigned status, void *userdata);
        void *userdata;
} KubeReflectorSpec;

/* Begins with a list; strings are copied. 0 or -errno. */
int kube_reflector_new(sd_event *event, const KubeReflectorSpec *spec, KubeReflector **ret);
KubeReflector *kube_reflector_free(KubeReflector *reflector);
DEFINE_CLEANUP(KubeReflector *, kube_reflector_free)

/* Lists anew after so long, whatever the watch says: for who cannot believe what was listed. */
void kube_reflector_relist(KubeReflector *reflector, uint64_t after_usec);

/* A complete list has been told. */
bool kube_reflector_is_synced(const KubeReflector *reflector);

/* Prints its phase, version and timers for `mainstay debug dump`. */
void kube_reflector_dump(const KubeReflector *reflector, FILE *out);
