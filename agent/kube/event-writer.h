/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Brings events to the API server, behind everything else: each is created once, and counted up
 * when it happens again. What comes faster than anybody reads, or while the server is away too
 * long, is dropped. */

#include "agent/kube/client.h"

enum {
        EVENTS_PENDING_MAX = 256,  /* then the oldest is dropped */
        EVENTS_AGE_MAX_SEC = 3600, /* the server itself keeps none for longer */
        EVENTS_BURST = 25,         /* of one pod; then one every… */
        EVENTS_REFILL_SEC = 300,
};

typedef struct EventWriter EventWriter;

typedef struct EventWriterSpec {
        KubeClient *client;
        /* 'error' stands until it is NULL; 'status' of HTTP. May be NULL. */
        void (*on_trouble)(const char *error, unsigned status, void *userdata);
        void *userdata;
} EventWriterSpec;

/* 0 or -errno. */
int event_writer_new(sd_event *event, const EventWriterSpec *spec, EventWriter **ret);
EventWriter *event_writer_free(EventWriter *writer);
DEFINE_CLEANUP(EventWriter *, event_writer_free)

/* A v1.Event as it is now, with its count: new, or another one than it was. 0 where it will be
 * written, -EDQUOT where it is one too many of its pod, -EBADMSG for what is no Event, -ENOMEM. */
int event_writer_tell(EventWriter *writer, const char *json);

/* How many were dropped since we began. */
uint64_t event_writer_dropped(const EventWriter *writer);
