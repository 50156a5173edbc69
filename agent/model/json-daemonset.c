/* SPDX-License-Identifier: Apache-2.0 */

/* DaemonSets, ControllerRevisions and Nodes as API JSON, for clients that use the agent instead of
 * an API server. */

#include "agent/model/json.h"
#include "agent/model/own-keys.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/json-text.h"
#include "common/text.h"

#include <stdio.h>
#include <stdlib.h>

/* Text written from our own tables can always be parsed; NULL: out of memory. */
static json_t *object_to_json_value(const Schema *schema, const void *object) {
        cleanup_free char *text = object_to_json(schema, object);

        return text ? json_loads(text, 0, NULL) : NULL;
}

static json_t *rfc3339_to_json(uint64_t realtime_usec) {
        char buffer[RFC3339_SIZE];

        return json_string(format_rfc3339(buffer, realtime_usec));
}

static json_t *daemonset_condition_to_json(const char *type, bool is_true, const char *reason,
                                           const char *message) {
        return json_pack("{s:s, s:s, s:s, s:s}", "type", type, "status", is_true ? "True" : "False",
                         "reason", reason, "message", message);
}

static const char *rollout_reason(const DaemonSetStatus *status) {
        if (status->is_rolled_back)
                return "ProgressDeadlineExceeded";
        if (status->rollback)
                return "RevisionPinned";
        return status->is_complete ? "RolloutComplete" : "RolloutInProgress";
}

/* For a DaemonSet of an API server: whether this node may create its pod. */
static json_t *admitted_condition_to_json(const DaemonSetStatus *status) {
        const char *reason = status->refusal_reason ? status->refusal_reason : "Pending";

        return daemonset_condition_to_json("Admitted", !status->is_refused,
                                           status->is_refused ? reason : "Admitted",
                                           status->is_refused ? strna(status->refusal) : "");
}

static json_t *daemonset_status_to_json(const DaemonSetStatus *status) {
        json_t *admitted = status->is_of_api ? admitted_condition_to_json(status) : NULL;

        return json_pack(
                "{s:i, s:i, s:i, s:i, s:i, s:i, s:i, s:I, s:[o, o, o*]}", "currentNumberScheduled",
                (int) status->current, "numberMisscheduled", (int) status->misscheduled,
                "desiredNumberScheduled", (int) status->desired, "numberReady", (int) status->ready,
                "updatedNumberScheduled", (int) status->updated, "numberAvailable",
                (int) status->available, "numberUnavailable",
                (int) (status->desired > status->available ? status->desired - status->available
                                                           : 0),
                "observedGeneration", (json_int_t) status->revision, "conditions",
                daemonset_condition_to_json("RunsHere", status->runs_here,
                                            status->rule ? status->rule : "NoRule",
                                            strna(status->why)),
                daemonset_condition_to_json("Progressing", status->is_complete,
                                            rollout_reason(status), strna(status->rollback)),
                admitted);
}

static int add_daemonset_metadata(json_t *json, const DaemonSetStatus *status) {
        json_t *metadata = json_object_get(json, "metadata");
        json_t *annotations = json_object_get(metadata, "annotations");
        char number[24];

        (void) snprintf(number, sizeof(number), "%lld", (long long) status->revision);
        if (!annotations) {
                annotations = json_object();
                (void) json_object_set_new(metadata, "annotations", annotations);
        }
        (void) json_object_set_new(annotations, "deprecated.daemonset.template.generation",
                                   json_string(number));
        (void) own_json_set_new(annotations, OWN_KEY_SOURCE, json_string(strna(status->source)));
        (void) json_object_set_new(metadata, "generation", json_integer(status->revision));
        return json_object_set_new(metadata, "creationTimestamp", rfc3339_to_json(status->created));
}

char *daemonset_to_json(const DaemonSet *set, const DaemonSetStatus *status) {
        cleanup_json json_t *json = object_to_json_value(&daemonset_schema, set);

        if (!json || add_daemonset_metadata(json, status) < 0 ||
            json_object_set_new(json, "kind", json_string("DaemonSet")) < 0 ||
            json_object_set_new(json, "apiVersion", json_string("apps/v1")) < 0 ||
            json_object_set_new(json, "status", daemonset_status_to_json(status)) < 0)
                return NULL;
        return json_to_text(json, JSON_COMPACT);
}

/* The template's labels, by which kubectl finds a DaemonSet's revisions. */
static json_t *revision_labels(const json_t *template, const char *hash) {
        json_t *labels =
                json_deep_copy(json_object_get(json_object_get(template, "metadata"), "labels"));

        if (!labels)
                labels = json_object();
        (void) json_object_set_new(labels, "controller-revision-hash", json_string(hash));
        return labels;
}

char *revision_to_json(const DaemonSet *set, const char *hash, int64_t number, uint64_t created,
                       const char *cause, const char *template, const char *source) {
        cleanup_json json_t *json = NULL, *data = json_loads(template, 0, NULL);
        cleanup_free char *name = NULL;

        if (!data || json_object_set_new(data, "$patch", json_string("replace")) < 0)
                return NULL;
        name = text_format("%s-%s", set->metadata.name, hash);
        if (!name)
                return NULL;
        json = json_pack("{s:s, s:s, s:{s:s, s:s, s:o, s:o, s:{s:s*, s:s}, s:[{s:s, s:s, s:s, "
                         "s:s, s:b}]}, s:{s:{s:O}}, s:I}",
                         "kind", "ControllerRevision", "apiVersion", "apps/v1", "metadata", "name",
                         name, "namespace", set->metadata.namespace, "creationTimestamp",
                         rfc3339_to_json(created), "labels", revision_labels(data, hash),
                         "annotations", "kubernetes.io/change-cause", cause,
                         own_key_name(OWN_KEY_SOURCE), source, "ownerReferences", "apiVersion",
                         "apps/v1", "kind", "DaemonSet", "name", set->metadata.name, "uid",
                         set->metadata.uid, "controller", 1, "data", "spec", "template", data,
                         "revision", (json_int_t) number);
        return json ? json_to_text(json, JSON_COMPACT) : NULL;
}

/* The kubelet's condition types in the kubelet's order; Ready is the last. */
static json_t *node_conditions_to_json(const NodeConditions *conditions, const char *not_ready) {
        json_t *array = json_array();

        for (NodeCondition c = 0; array && conditions && c < N_NODE_CONDITIONS; c++) {
                bool is_true = conditions->set & NODE_CONDITION_BIT(c);
                const NodeConditionInfo *info = &node_conditions[c];

                if (!is_true && !(NODE_PRESSURE_CONDITIONS & NODE_CONDITION_BIT(c)))
                        continue;
                (void) json_array_append_new(
                        array,
                        json_pack("{s:s, s:s, s:o, s:s, s:s}", "type", info->name, "status",
                                  is_true ? "True" : "False", "lastTransitionTime",
                                  rfc3339_to_json(conditions->since[c]), "reason",
                                  is_true ? info->reason_true : info->reason_false, "message",
                                  is_true ? info->message_true : info->message_false));
        }
        if (array)
                (void) json_array_append_new(
                        array,
                        json_pack("{s:s, s:s, s:s, s:s}", "type", "Ready", "status",
                                  not_ready ? "False" : "True", "reason",
                                  not_ready ? "KubeletNotReady" : "KubeletReady", "message",
                                  not_ready ? not_ready : "kubelet is posting ready status"));
        return array;
}

static json_t *connection_condition_to_json(const char *type, const char *status,
                                            const char *reason, const char *message,
                                            uint64_t since) {
        return json_pack("{s:s, s:s, s:o*, s:s, s:s}", "type", type, "status", status,
                         "lastTransitionTime", since > 0 ? rfc3339_to_json(since) : NULL, "reason",
                         reason, "message", message);
}

static void append_connection_conditions(json_t *conditions,
                                         const NodeApiServerConnection *connection) {
        bool is_known = connection->since > 0;
        const char *reached = connection->is_reached ? "True" : "False";

        (void) json_array_append_new(
                conditions, connection_condition_to_json(
                                    NODE_REACHED_CONDITION, is_known ? reached : "Unknown",
                                    connection->is_reached ? "Reached"
                                    : is_known             ? "NotReached"
                                                           : "NotAsked",
                                    connection->is_reached ? "" : strna(connection->last_error),
                                    connection->since));
        (void) json_array_append_new(
                conditions, connection_condition_to_json(
                                    NODE_REFUSED_CONDITION, connection->refused ? "True" : "False",
                                    connection->refused ? "Forbidden" : "NothingRefused",
                                    strna(connection->refused), connection->refused_since));
}

/* "mainstay.io/StaticPodURLFailed": whether manifests of a source differ from its current
 * content. */
static void append_source_conditions(json_t *conditions, const NodeSources *sources) {
        for (size_t i = 0; i < NODE_SOURCES_MAX; i++) {
                const NodeSourceInfo *info = &node_source_infos[i];
                const NodeSourceStatus *source = node_sources_find(sources, info->name);

                if (source)
                        (void) json_array_append_new(
                                conditions,
                                connection_condition_to_json(
                                        info->condition, node_source_condition_status(source),
                                        node_source_reason(source), strna(source->message),
                                        source->since));
        }
}

static json_t *connection_annotations(const NodeApiServerConnection *connection) {
        if (!connection->has_joined)
                return NULL;
        return json_pack("{s:s*, s:s*, s:s*}", own_key_name(OWN_KEY_API_SERVER), connection->server,
                         own_key_name(OWN_KEY_API_SERVER_ERROR), connection->last_error,
                         own_key_name(OWN_KEY_DAEMONSETS_BY), connection->daemonsets_by);
}

char *node_to_json(const NodeLabelsTaints *labels_taints, const NodeConditions *conditions,
                   const char *not_ready, const NodeApiServerConnection *connection,
                   const NodeSources *sources) {
        cleanup_json json_t *node = object_to_json_value(&node_labels_taints_schema, labels_taints);
        cleanup_json json_t *all = node_conditions_to_json(conditions, not_ready);
        cleanup_json json_t *json = NULL;

        if (!node || !all)
                return NULL;
        if (connection->has_joined)
                append_connection_conditions(all, connection);
        append_source_conditions(all, sources);
        json = json_pack("{s:s, s:s, s:{s:O, s:O, s:o*}, s:{s:O*}, s:{s:O, s:{s:s, s:s}}}", "kind",
                         "Node", "apiVersion", "v1", "metadata", "name",
                         json_object_get(node, "name"), "labels", json_object_get(node, "labels"),
                         "annotations", connection_annotations(connection), "spec", "taints",
                         json_object_get(node, "taints"), "status", "conditions", all, "nodeInfo",
                         "kubeletVersion", NODE_KUBELET_VERSION, "containerRuntimeVersion",
                         NODE_RUNTIME_VERSION);
        return json ? json_to_text(json, JSON_COMPACT) : NULL;
}
