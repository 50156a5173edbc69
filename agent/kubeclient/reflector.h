/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Lists and watches a collection of the API server (client-go: reflector): a list in pages, then a
 * watch with bookmarks, which is resumed after an interruption. Lists do not use sendInitialEvents,
 * which an API server on an older etcd refuses. If a watch ends with 410, an ERROR event or a
 * decreased resourceVersion, a new list follows, after a back-off with jitter. The same applies if
 * no server was listening for a while, because the next one may have an older state of etcd. A
 * watch that is merely closed is resumed.
 *
 * A list is reported as on_list_begin, each object, on_list_end. Only a complete list shows that an
 * object is absent; an interrupted one proves nothing. */

#include "agent/kubeclient/kube-client.h"

typedef struct KubeReflector KubeReflector;

typedef enum KubeWatchEvent {
        KUBE_LISTED, /* in a list */
        KUBE_ADDED,  /* from the watch */
        KUBE_MODIFIED,
        KUBE_DELETED, /* with its last state */
        N_KUBE_WATCH_EVENTS,
} KubeWatchEvent;

/* Selects objects with this field: "spec.nodeName" and the name of a node, which is escaped as
 * needed. */
typedef struct KubeFieldSelector {
        const char *field; /* NULL: all objects */
        const char *value;
        bool is_negated; /* selects objects with another value */
} KubeFieldSelector;

typedef struct KubeReflectorSpec {
        KubeClient *client;
        const char *path; /* "/api/v1/pods" */
        KubeFieldSelector field_selector;
        unsigned page_size;       /* objects per page; 0: 500 */
        bool may_soon_be_allowed; /* a refusal is retried like other errors */

        /* 'json' is one NUL-terminated object, which may be invalid. */
        void (*on_object)(KubeWatchEvent event_type, const char *json, size_t length,
                          void *userdata);
        void (*on_list_begin)(void *userdata);
        void (*on_list_end)(bool is_complete, void *userdata);
        /* Called when the error changes; it is valid until a list or watch succeeds, which is
         * reported with NULL. 'status' is the HTTP status. */
        void (*on_error)(const char *error, unsigned status, void *userdata);
        void *userdata;
} KubeReflectorSpec;

/* Starts with a list; strings are copied. 0 or -errno. */
int kube_reflector_new(sd_event *event, const KubeReflectorSpec *spec, KubeReflector **ret);
KubeReflector *kube_reflector_free(KubeReflector *reflector);
DEFINE_CLEANUP(KubeReflector *, kube_reflector_free)

/* Lists again after this time, for a caller that doubts the last list. */
void kube_reflector_relist(KubeReflector *reflector, uint64_t after_usec);

/* Whether a complete list has been reported. */
bool kube_reflector_is_synced(const KubeReflector *reflector);

/* Prints its phase, version and timers for `mainstay debug dump`. */
void kube_reflector_dump(const KubeReflector *reflector, FILE *out);
