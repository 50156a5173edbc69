/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Sends events to the API server with the lowest priority: each event is created once, and its
 * count is patched when it happens again. Events are dropped if they happen too often, or if the
 * server is unreachable for too long. */

#include "agent/kubeclient/kube-client.h"

#include <stdio.h>

enum {
        EVENTS_PENDING_MAX = 256,  /* limit of queued events; the oldest are dropped first */
        EVENTS_AGE_MAX_SEC = 3600, /* the server's own retention time */
        EVENTS_BURST = 25,         /* burst of events of one pod; after that, one per */
        EVENTS_REFILL_SEC = 300,
};

typedef struct KubeEventSink KubeEventSink;

typedef struct KubeEventSinkSpec {
        KubeClient *client;
        /* 'error' is valid until the next call with NULL; 'status' is the HTTP status. May be
         * NULL. */
        void (*on_error)(const char *error, unsigned status, void *userdata);
        void *userdata;
} KubeEventSinkSpec;

/* 0 or -errno. */
int kube_event_sink_new(sd_event *event, const KubeEventSinkSpec *spec, KubeEventSink **ret);
KubeEventSink *kube_event_sink_free(KubeEventSink *sink);
DEFINE_CLEANUP(KubeEventSink *, kube_event_sink_free)

/* A new or repeated v1.Event with its count. 0 if it will be sent, -EDQUOT if its pod has too many,
 * -EBADMSG if the JSON is not an Event, -ENOMEM. */
int kube_event_sink_submit(KubeEventSink *sink, const char *json);

/* Prints the events that are not written yet, for `mainstay debug dump`. */
void kube_event_sink_dump(const KubeEventSink *sink, FILE *out);
