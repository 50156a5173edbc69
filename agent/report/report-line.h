/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Objects as lines of a report: compact JSON. A line contains only the node and the names and
 * images of containers from a pod's spec: no environment, arguments, volumes or annotations except
 * Mainstay's own, because they may contain secrets. */

#include "agent/model/pod.h"

/* 'json' is a v1.Pod. Returns memory that the caller frees; NULL: out of memory, or not a pod. */
char *report_line_of_pod(const char *json, const char *node_name);

/* A pod that is gone: its metadata, with a completed deletion (a grace period of 0).
 */
char *report_line_of_gone_pod(const Pod *pod, const char *node_name, uint64_t realtime_usec);

/* 'json' is a v1.Node, which is printed without the state of the report itself and without times
 * that always change. */
char *report_line_of_node(const char *json);

/* The key of a v1.Event in the queue, which is the same after a restart of the agent, and the UID
 * of its object; the caller frees both. 0, -EBADMSG or -ENOMEM. */
int report_event_names(const char *json, char **ret_key, char **ret_uid);
