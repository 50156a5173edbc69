/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The latest Kubernetes events of pods, DaemonSets and the node, in memory only, for 'mainstay get
 * events' and 'describe'. An event that repeats (same object, container, reason and message) is
 * counted and becomes the latest. apiserver/ sends them to an API server. */

#include "agent/model/event.h"

#include <stdint.h>

enum {
        STORED_EVENTS_MAX = 1000,
        STORED_EVENTS_OF_POD_MAX = 20, /* per UID; beyond that, the oldest one is dropped */
        EVENT_MESSAGE_MAX = 1024,
};

typedef struct EventStore EventStore;

/* 'node_name' is borrowed. NULL: out of memory. */
EventStore *event_store_new(const char *node_name);
EventStore *event_store_free(EventStore *events);
DEFINE_CLEANUP(EventStore *, event_store_free)

/* Copies the event; messages longer than EVENT_MESSAGE_MAX are truncated. If memory is exhausted,
 * the event is dropped. 'now' is realtime. True if it is the first of its kind. */
bool event_store_add(EventStore *events, const PodEvent *event, uint64_t now);

/* The first event that was added or counted after the one with this number; 0 requests the oldest.
 * 1 with the number of the event and the v1.Event as compact JSON, which the caller frees; 0 if
 * there is none; -ENOMEM. */
int event_store_next(const EventStore *events, uint64_t after, uint64_t *ret_number,
                     char **ret_json);
