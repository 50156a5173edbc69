/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Brings events to the API server, behind everything else: each is created once, and counted up
 * when it happens again. What comes faster than anybody reads, or while the server is away too
 * long, is dropped. */

#include "agent/kubeclient/client.h"

enum {
        EVENTS_PENDING_MAX = 256,  /* then the oldest is dropped */
        EVENTS_AGE_MAX_SEC = 3600, /* the server itself keeps none for longer */
        EVENTS_BURST = 25,         /* of one pod; then one every… */
        EVENTS_REFILL_SEC = 300,
};

typedef struct KubeEventSink KubeEventSink;

typedef struct KubeEventSinkSpec {
        KubeClient *client;
        /* 'error' stands until it is NULL; 'status' of HTTP. May be NULL. */
        void (*on_error)(const char *error, unsigned status, void *userdata);
        void *userdata;
} KubeEventSinkSpec;

/* 0 or -errno. */
int kube_event_sink_new(sd_event *event, const KubeEventSinkSpec *spec, KubeEventSink **ret);
KubeEventSink *kube_event_sink_free(KubeEventSink *sink);
DEFINE_CLEANUP(KubeEventSink *, kube_event_sink_free)

/* A v1.Event as it is now, with its count: new, or another one than it was. 0 where it will be
 * written, -EDQUOT where it is one too many of its pod, -EBADMSG for what is no Event, -ENOMEM. */
int kube_event_sink_submit(KubeEventSink *sink, const char *json);

/* How many were dropped since we began. */
uint64_t kube_event_sink_n_dropped(const KubeEventSink *sink);
