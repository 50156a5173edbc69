/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The events of a Node (kubelet: setters of its status): a condition changed, the machine booted
 * again, the node is cordoned, or one of its own labels was set back. They are found by comparing
 * the server's Node before and after a request. Pure. */

#include "agent/model/event.h"

#include <jansson.h>

typedef void (*NodeEventCallback)(const PodEvent *event, void *userdata);

/* 'before' is the server's Node that a request changed, NULL where the request created it; 'after'
 * is that of the response. Calls back for each event, in their order. What is not a Node has none.
 */
void node_events_compare(const json_t *before, const json_t *after, NodeEventCallback on_event,
                         void *userdata);
