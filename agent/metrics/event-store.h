/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The events of pods and DaemonSets, in memory: the last ones, each with how often it happened.
 * They are for people who look; an agent that ends takes them along. What happens again (the same
 * object, container, reason and sentence) is one event that is counted, and becomes the latest. */

#include "agent/model/event.h"

#include <stdint.h>

enum {
        STORED_EVENTS_MAX = 1000,
        STORED_EVENTS_OF_POD_MAX = 20, /* of one UID; then its oldest goes */
        EVENT_MESSAGE_MAX = 1024,
};

typedef struct EventStore EventStore;

/* 'node_name' is borrowed. NULL where memory ends. */
EventStore *event_store_new(const char *node_name);
EventStore *event_store_free(EventStore *events);
DEFINE_CLEANUP(EventStore *, event_store_free)

/* Copies, and cuts off what is longer than EVENT_MESSAGE_MAX. Where memory ends, the event is not
 * kept. 'now' is realtime. */
bool event_store_add(EventStore *events, const PodEvent *event, uint64_t now);

/* The first event that was added or counted after the one with this number; 0 asks for the oldest.
 * 1 with its own number and the v1.Event as compact JSON, which the caller frees; 0 when there is
 * none; -ENOMEM. */
int event_store_next(const EventStore *events, uint64_t after, uint64_t *ret_number,
                     char **ret_json);
