/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The events of a Node (kubelet: setters of its status): a condition changed, the machine rebooted,
 * or one of the node's own labels was restored, all of which are found by comparing the server's
 * Node before and after a request; or another client cordoned the node. Pure. */

#include "agent/model/event.h"

#include <jansson.h>

typedef void (*NodeEventCallback)(const PodEvent *event, void *userdata);

/* 'before' is the server's Node that a request changed, NULL if the request created it; 'after' is
 * the Node in the response. Calls back for each event in order. A document that is not a Node
 * causes no events. */
void node_events_compare(const json_t *before, const json_t *after, NodeEventCallback on_event,
                         void *userdata);

/* NodeNotSchedulable or NodeSchedulable if the server's Node differs from '*is_unschedulable',
 * which is updated, and is false when the agent starts. */
void node_events_check_schedulable(bool *is_unschedulable, const json_t *node,
                                   NodeEventCallback on_event, void *userdata);
