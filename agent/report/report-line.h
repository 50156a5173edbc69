/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Objects as lines of a report: compact JSON. From a pod's spec it contains only the node, and
 * names and images of containers: no environment, arguments, volumes or annotations except our own,
 * because they may contain secrets. */

#include "agent/model/pod.h"

/* 'json' is a v1.Pod. Memory that the caller frees; NULL: out of memory, or not a pod. */
char *report_line_of_pod(const char *json, const char *node_name);

/* A pod that is gone: its metadata, with a deletion that has come to its end (a grace period of 0).
 */
char *report_line_of_gone_pod(const Pod *pod, const char *node_name, uint64_t realtime_usec);

/* 'json' is a v1.Node: without the state of the report itself, and times that always change. */
char *report_line_of_node(const char *json);

/* The key of a v1.Event in the queue, also across restarts of the agent, and the UID of its object,
 * in memory that the caller frees. 0, -EBADMSG or -ENOMEM. */
int report_event_names(const char *json, char **ret_key, char **ret_uid);
