/* SPDX-License-Identifier: Apache-2.0 */
/* v1.Pod as JSON, and other objects according to their tables. */

#include "agent/model/json-tree.h"
#include "agent/model/json.h"
#include "agent/model/own-keys.h"
#include "agent/model/pod-status-json.h"
#include "common/cleanup.h"
#include "common/json-text.h"

/* The times in metadata come from the status; their rows determine their position. */
static void put_metadata_time(JsonWriter *writer, json_t *json, const char *key, const Pod *pod,
                              const PodStatus *status) {
        if (streq(key, "creationTimestamp") && status->start_time > 0)
                json_writer_put(writer, json, key, json_writer_timestamp(status->start_time));
        if (status->deletion_time == 0)
                return;
        if (streq(key, "deletionTimestamp"))
                json_writer_put(writer, json, key, json_writer_timestamp(status->deletion_time));
        if (streq(key, "deletionGracePeriodSeconds"))
                json_writer_put_optional_int(writer, json, key,
                                             &pod->spec.termination_grace_period_seconds);
}

static json_t *pod_metadata_to_json(JsonWriter *writer, const Schema *schema, const Pod *pod,
                                    const PodStatus *status) {
        json_t *json = json_object();

        for (size_t i = 0; i < schema->n_fields; i++) {
                json_writer_put_field(writer, json, &schema->fields[i], &pod->metadata);
                if (status && schema->fields[i].type == FIELD_IGNORED)
                        put_metadata_time(writer, json, schema->fields[i].key, pod, status);
        }
        return json;
}

static json_t *write_pod_json(JsonWriter *writer, const Pod *pod, const PodStatus *status) {
        json_t *json = json_object();

        json_writer_put(writer, json, "kind", json_string("Pod"));
        json_writer_put(writer, json, "apiVersion", json_string("v1"));
        json_writer_put(writer, json, "metadata",
                        pod_metadata_to_json(writer, &object_meta_schema, pod, status));
        json_writer_put(writer, json, "spec",
                        json_writer_object(writer, &pod_spec_schema, &pod->spec));
        if (status)
                json_writer_put(writer, json, "status",
                                json_writer_pod_status(writer, pod, status));
        return json;
}

json_t *pod_to_json_tree(const Pod *pod, const PodStatus *status) {
        JsonWriter writer = { 0 };
        json_t *json = write_pod_json(&writer, pod, status);

        return json_writer_finish_tree(&writer, json);
}

char *pod_to_json(const Pod *pod, const PodStatus *status) {
        JsonWriter writer = { 0 };
        cleanup_json json_t *json = write_pod_json(&writer, pod, status);

        return json_writer_finish(&writer, json);
}

char *pod_to_json_from(const Pod *pod, const PodStatus *status, const char *source) {
        JsonWriter writer = { 0 };
        cleanup_json json_t *json = write_pod_json(&writer, pod, status);
        json_t *metadata = json_object_get(json, "metadata");
        json_t *annotations = json_object_get(metadata, "annotations");

        if (!annotations) {
                annotations = json_object();
                json_writer_put(&writer, metadata, "annotations", annotations);
        }
        json_writer_put_string(&writer, annotations, own_key_name(OWN_KEY_SOURCE), source);
        return json_writer_finish(&writer, json);
}

char *object_to_json(const Schema *schema, const void *object) {
        JsonWriter writer = { 0 };
        cleanup_json json_t *json = json_writer_object(&writer, schema, object);

        return json_writer_finish(&writer, json);
}

char *pod_spec_to_json(const PodSpec *spec) {
        JsonWriter writer = { 0 };
        cleanup_json json_t *json = json_writer_object(&writer, &pod_spec_schema, spec);

        return json_writer_finish(&writer, json);
}

int is_json_object(const char *data, size_t length) {
        cleanup_json json_t *json = NULL;
        int r = json_parse_text(data, length, 0, &json, NULL);

        return r == -ENOMEM ? r : json_is_object(json);
}
