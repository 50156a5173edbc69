/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Model objects as API JSON, written according to their tables. */

#include "agent/model/daemonset.h"
#include "agent/model/node-status.h"
#include "agent/model/node.h"
#include "agent/model/object.h"
#include "agent/model/pod.h"
#include "agent/model/schema.h"
#include "agent/model/status.h"

/* A v1.Pod, compact. If 'status' is NULL, it is omitted, as in records. Unset fields are absent, as
 * in the API's JSON. The caller frees it; NULL: out of memory. */
char *pod_to_json(const Pod *pod, const PodStatus *status);

/* The same for display, with an annotation that names the pod's source. */
char *pod_to_json_from(const Pod *pod, const PodStatus *status, const char *source);

/* The spec alone, in table order, for hashes: equal specs give equal bytes. */
char *pod_spec_to_json(const PodSpec *spec);

/* Any object in the order of its table, also for hashes: equal objects give equal bytes. */
char *object_to_json(const Schema *schema, const void *object);
/* Returns 1 if the bytes are exactly one JSON object, 0 if not, or -ENOMEM. */
int is_json_object(const char *data, size_t length);

/* An apps/v1 DaemonSet with its status, whose conditions show whether the DaemonSet runs on this
 * node, and the state of its rollout. */
char *daemonset_to_json(const DaemonSet *set, const DaemonSetStatus *status);

/* An apps/v1 ControllerRevision. 'template' is its JSON, 'source' the source of its DaemonSet. */
char *revision_to_json(const DaemonSet *set, const char *hash, int64_t number, uint64_t created,
                       const char *cause, const char *template, const char *source);

/* A v1.Node with labels, taints, images and conditions; 'not_ready' is NULL if it is Ready. For a
 * node that has joined an API server, the state of that connection is in further conditions and
 * annotations. */
char *node_to_json(const NodeLabelsTaints *labels_taints, const NodeConditions *conditions,
                   const char *not_ready, const NodeApiServerConnection *connection,
                   const NodeSources *sources);
/* A v1.ConfigMap with its values; a v1.Secret with only the keys and the lengths of its values; or
 * a class. 'created_at' is realtime; 0: unknown. An annotation contains the source, see
 * print_daemonset_source(). The caller frees it; NULL: out of memory. */
char *data_object_to_json(const DataObject *object, uint64_t created_at, const char *source);
