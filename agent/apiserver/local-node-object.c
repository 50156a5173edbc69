/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/apiserver/local-node-object.h"

#include "agent/kubeclient/node-status-json.h"
#include "agent/model/json.h"
#include "agent/model/own-keys.h"
#include "agent/node/agent-paths.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/json-text.h"

static json_t *print_node_time(uint64_t realtime) {
        char buffer[RFC3339_SIZE];

        return realtime > 0 ? json_string(format_rfc3339(buffer, realtime)) : NULL;
}

/* The agent does not poll, so the time of a condition's last check is the time of its last change,
 * and the object stays the same as long as nothing happens. */
static void add_condition_times(json_t *conditions, uint64_t ready_since) {
        size_t i;
        json_t *condition;

        json_array_foreach(conditions, i, condition) {
                json_t *since = json_object_get(condition, "lastTransitionTime");

                if (!since && ready_since > 0) {
                        since = print_node_time(ready_since);
                        (void) json_object_set_new(condition, "lastTransitionTime", since);
                }
                if (since)
                        (void) json_object_set(condition, "lastHeartbeatTime", since);
        }
}

static int add_node_status(const NodeObjectSpec *spec, json_t *node) {
        json_t *status = json_object_get(node, "status");
        cleanup_json json_t *collected_json = NULL;
        NodeStatus collected = { 0 };
        int r = collect_node_status(spec->inputs, NULL, NULL, &collected);

        if (r < 0)
                return r;
        collected_json = node_status_to_json(&collected);
        node_status_done(&collected);
        if (!collected_json || json_object_update(status, collected_json) < 0)
                return -ENOMEM;
        add_condition_times(json_object_get(status, "conditions"), spec->ready_since);
        return 0;
}

static int add_annotation(json_t *metadata, OwnKey key, const char *value) {
        json_t *annotations = json_object_get(metadata, "annotations");

        if (!annotations) {
                annotations = json_object();
                if (json_object_set_new(metadata, "annotations", annotations) < 0)
                        return -ENOMEM;
        }
        return own_json_set_new(annotations, key, json_string(value)) < 0 ? -ENOMEM : 0;
}

/* The state that `describe node` shows or warns about. */
static int add_warnings(const NodeObjectSpec *spec, json_t *metadata) {
        int r = 0;

        if (!spec->inputs->machine->has_landlock)
                r = add_annotation(metadata, OWN_KEY_LANDLOCK, "missing");
        if (r >= 0 && spec->settings_without_effect)
                r = add_annotation(metadata, OWN_KEY_SETTINGS_WITHOUT_EFFECT,
                                   spec->settings_without_effect);
        if (r >= 0 && spec->secrets_at_rest)
                r = add_annotation(metadata, OWN_KEY_SECRETS_AT_REST, spec->secrets_at_rest);
        return r;
}

char *node_object_to_json(const NodeObjectSpec *spec) {
        const NodeSources sources = spec->inputs->list_sources(spec->inputs->userdata);
        cleanup_free char *text =
                node_to_json(spec->labels_taints, spec->inputs->conditions,
                             spec->inputs->network->not_ready, spec->connection, &sources);
        cleanup_json json_t *node = text ? json_loads(text, 0, NULL) : NULL;

        if (!node || add_node_status(spec, node) < 0 ||
            add_warnings(spec, json_object_get(node, "metadata")) < 0)
                return NULL;
        (void) json_object_set_new(json_object_get(node, "metadata"), "creationTimestamp",
                                   print_node_time(node_creation_time(spec->state_dir)));
        return json_to_text(node, JSON_COMPACT);
}
