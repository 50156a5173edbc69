/* SPDX-License-Identifier: Apache-2.0 */

/* API JSON of model objects. Specs are written by their tables; statuses, which are never read, by
 * hand. Members are in the order of the API server's output, which is jansson's insertion order.
 *
 * Any of the many small allocations may fail. They are not checked one by one: every json_…_new()
 * call accepts NULL for a value and then fails, and the writer records that one did. */

#include "agent/model/json.h"

#include "agent/model/containers.h"
#include "agent/model/json-tree.h"
#include "agent/model/quantity.h"
#include "agent/model/schema.h"
#include "agent/model/signals.h"
#include "agent/model/total-resources.h"
#include "common/cleanup.h"
#include "common/clock.h"

#include <jansson.h>

typedef struct JsonWriter {
        bool has_failed;
} JsonWriter;

static json_t *object_to_json_by_schema(JsonWriter *writer, const Schema *schema,
                                        const void *object);

/* Takes ownership of the value. */
static void json_put(JsonWriter *writer, json_t *object, const char *key, json_t *value) {
        if (!value || json_object_set_new_nocheck(object, key, value) < 0)
                writer->has_failed = true;
}

static void json_append(JsonWriter *writer, json_t *array, json_t *value) {
        if (!value || json_array_append_new(array, value) < 0)
                writer->has_failed = true;
}

/* Output of containers and runtimes need not be UTF-8; then each byte beyond ASCII becomes '?'. */
static json_t *string_to_json(const char *string) {
        cleanup_free char *ascii = NULL;
        json_t *json = json_string(string);

        if (json)
                return json;
        ascii = strdup(string);
        for (char *p = ascii; p && *p; p++)
                if ((unsigned char) *p >= 0x80)
                        *p = '?';
        return ascii ? json_string(ascii) : NULL;
}

/* Left out where it is NULL or empty. */
static void json_put_string(JsonWriter *writer, json_t *object, const char *key,
                            const char *string) {
        if (string && string[0])
                json_put(writer, object, key, string_to_json(string));
}

static json_t *timestamp_to_json(uint64_t realtime_usec) {
        char buffer[RFC3339_SIZE];

        return realtime_usec > 0 ? json_string(format_rfc3339(buffer, realtime_usec)) : json_null();
}

static json_t *strings_field_to_json(JsonWriter *writer, char *const *strings) {
        json_t *array = json_array();

        for (size_t i = 0; strings[i]; i++)
                json_append(writer, array, string_to_json(strings[i]));
        return array;
}

static json_t *string_map_to_json(JsonWriter *writer, const StringMap *map) {
        json_t *object = json_object();

        for (size_t i = 0; i < map->n; i++)
                json_put(writer, object, map->items[i].key,
                         string_to_json(strna(map->items[i].value)));
        return object;
}

static json_t *list_to_json(JsonWriter *writer, const Field *field, const List *list) {
        json_t *array = json_array();

        for (size_t i = 0; i < list->n; i++)
                json_append(writer, array,
                            object_to_json_by_schema(writer, field->schema,
                                                     (const char *) list->items +
                                                             i * field->schema->size));
        return array;
}

static json_t *enum_to_json(const Field *field, const void *at) {
        unsigned value;

        memcpy(&value, at, sizeof(value));
        return value > 0 && value < field->n_names ? json_string(field->names[value]) : NULL;
}

/* The pointer behind a string, a string array and an optional object. */
static void *load_pointer(const void *at) {
        void *pointer;

        memcpy(&pointer, at, sizeof(pointer));
        return pointer;
}

static void put_pointer(JsonWriter *writer, json_t *json, const Field *field, void *pointer) {
        if (!pointer)
                return;
        if (field->type == FIELD_STRING)
                json_put_string(writer, json, field->key, pointer);
        else if (field->type == FIELD_STRINGS)
                json_put(writer, json, field->key, strings_field_to_json(writer, pointer));
        else
                json_put(writer, json, field->key,
                         object_to_json_by_schema(writer, field->schema, pointer));
}

static void put_optional_int(JsonWriter *writer, json_t *json, const char *key,
                             const OptionalInt *number) {
        if (number->is_set)
                json_put(writer, json, key, json_integer(number->value));
}

static void put_int_or_string(JsonWriter *writer, json_t *json, const char *key,
                              const IntOrString *value) {
        if (value->text)
                json_put_string(writer, json, key, value->text);
        else
                put_optional_int(writer, json, key, &value->number);
}

static void put_optional_bool(JsonWriter *writer, json_t *json, const char *key,
                              const OptionalBool *value) {
        if (value->is_set)
                json_put(writer, json, key, json_boolean(value->value));
}

static void put_ints(JsonWriter *writer, json_t *json, const char *key, const IntList *list) {
        json_t *array = json_array();

        for (size_t i = 0; i < list->n; i++)
                json_append(writer, array, json_integer(list->items[i]));
        if (list->n > 0)
                json_put(writer, json, key, array);
        else
                json_decref(array);
}

/* An embedded object without set fields is left out. */
static void put_embedded(JsonWriter *writer, json_t *json, const Field *field, const void *at) {
        json_t *value = object_to_json_by_schema(writer, field->schema, at);

        if (json_object_size(value) > 0)
                json_put(writer, json, field->key, value);
        else
                json_decref(value);
}

static void put_list(JsonWriter *writer, json_t *json, const Field *field, const void *object) {
        List list = field_list(field, object);

        if (list.n > 0)
                json_put(writer, json, field->key, list_to_json(writer, field, &list));
}

static void json_put_field(JsonWriter *writer, json_t *json, const Field *field,
                           const void *object) {
        const void *at = field_at_const(field, object);
        const StringMap *map = at;
        json_t *value;

        switch (field->type) {
        case FIELD_STRING:
        case FIELD_STRINGS:
        case FIELD_OPTIONAL:
                put_pointer(writer, json, field, load_pointer(at));
                break;
        case FIELD_BOOL:
                if (*(const bool *) at)
                        json_put(writer, json, field->key, json_true());
                break;
        case FIELD_PRESENT:
                if (*(const bool *) at)
                        json_put(writer, json, field->key, json_object());
                break;
        case FIELD_OPTIONAL_BOOL:
                put_optional_bool(writer, json, field->key, at);
                break;
        case FIELD_INT:
                put_optional_int(writer, json, field->key, at);
                break;
        case FIELD_INTS:
                put_ints(writer, json, field->key, at);
                break;
        case FIELD_INT_OR_STRING:
        case FIELD_PORT:
                put_int_or_string(writer, json, field->key, at);
                break;
        case FIELD_QUANTITY:
                json_put_string(writer, json, field->key, ((const Quantity *) at)->text);
                break;
        case FIELD_ENUM:
                value = enum_to_json(field, at);
                if (value)
                        json_put(writer, json, field->key, value);
                break;
        case FIELD_STRING_MAP:
                if (map->n > 0)
                        json_put(writer, json, field->key, string_map_to_json(writer, map));
                break;
        case FIELD_OBJECT:
                put_embedded(writer, json, field, at);
                break;
        case FIELD_LIST:
                put_list(writer, json, field, object);
                break;
        case FIELD_REFUSED:
        case FIELD_IGNORED:
        case N_FIELD_TYPES:
                break;
        }
}

static json_t *object_to_json_by_schema(JsonWriter *writer, const Schema *schema,
                                        const void *object) {
        json_t *json = json_object();

        for (size_t i = 0; i < schema->n_fields; i++)
                json_put_field(writer, json, &schema->fields[i], object);
        return json;
}

static json_t *waiting_state_to_json(JsonWriter *writer, const ContainerState *state) {
        json_t *json = json_object();

        json_put_string(writer, json, "reason", state->reason);
        json_put_string(writer, json, "message", state->message);
        return json;
}

static json_t *running_state_to_json(JsonWriter *writer, const ContainerState *state) {
        json_t *json = json_object();

        json_put(writer, json, "startedAt", timestamp_to_json(state->started_at));
        return json;
}

static json_t *terminated_state_to_json(JsonWriter *writer, const ContainerState *state) {
        json_t *json = json_object();

        json_put(writer, json, "exitCode", json_integer(state->exit_code));
        if (state->signal != 0)
                json_put(writer, json, "signal", json_integer(state->signal));
        json_put_string(writer, json, "reason", state->reason);
        json_put_string(writer, json, "message", state->message);
        json_put(writer, json, "startedAt", timestamp_to_json(state->started_at));
        json_put(writer, json, "finishedAt", timestamp_to_json(state->finished_at));
        json_put_string(writer, json, "containerID", state->container_id);
        return json;
}

static json_t *container_state_to_json(JsonWriter *writer, const ContainerState *state) {
        json_t *json = json_object();

        switch (state->kind) {
        case STATE_NONE:
                break;
        case STATE_WAITING:
                json_put(writer, json, "waiting", waiting_state_to_json(writer, state));
                break;
        case STATE_RUNNING:
                json_put(writer, json, "running", running_state_to_json(writer, state));
                break;
        case STATE_TERMINATED:
                json_put(writer, json, "terminated", terminated_state_to_json(writer, state));
                break;
        }
        return json;
}

/* As in the kubelet: writable mounts are not listed; "if possible" is reported as enabled, because
 * every supported kernel can do it. */
static json_t *volume_mount_status_to_json(JsonWriter *writer, const VolumeMount *mount) {
        bool is_recursive = mount->recursive_read_only > RECURSIVE_READ_ONLY_DISABLED;
        json_t *json = json_object();

        json_put_string(writer, json, "name", mount->name);
        json_put_string(writer, json, "mountPath", mount->mount_path);
        if (!mount->read_only)
                return json;
        json_put(writer, json, "readOnly", json_true());
        json_put_string(writer, json, "recursiveReadOnly", is_recursive ? "Enabled" : "Disabled");
        return json;
}

static void put_mount_statuses(JsonWriter *writer, json_t *json, const Container *container) {
        json_t *array;

        if (container->volume_mounts.n == 0)
                return;
        array = json_array();
        for (size_t i = 0; i < container->volume_mounts.n; i++)
                json_append(
                        writer, array,
                        volume_mount_status_to_json(writer, &container->volume_mounts.items[i]));
        json_put(writer, json, "volumeMounts", array);
}

static void put_container_user(JsonWriter *writer, json_t *json, const ContainerUser *user) {
        json_t *outer = json_object(), *inner = json_object();

        json_put(writer, inner, "uid", json_integer(user->uid));
        json_put(writer, inner, "gid", json_integer(user->gid));
        put_ints(writer, inner, "supplementalGroups", &user->groups);
        json_put(writer, outer, "linux", inner);
        json_put(writer, json, "user", outer);
}

static void put_if_not_empty(JsonWriter *writer, json_t *json, const char *key, json_t *value) {
        if (json_object_size(value) > 0)
                json_put(writer, json, key, value);
        else
                json_decref(value);
}

/* Fields of a container that has been started. */
static void put_started_container_status(JsonWriter *writer, json_t *json,
                                         const Container *container,
                                         const ContainerStatus *status) {
        char signal[SIGNAL_NAME_SIZE];
        json_t *allocated = object_to_json_by_schema(writer, &resource_list_schema,
                                                     &container->resources.requests);

        put_if_not_empty(writer, json, "allocatedResources", allocated);
        json_put(writer, json, "resources",
                 object_to_json_by_schema(writer, &resource_requirements_schema,
                                          &status->resources));
        put_mount_statuses(writer, json, container);
        if (status->user.is_known)
                put_container_user(writer, json, &status->user);
        if (status->stop_signal > 0)
                json_put_string(writer, json, "stopSignal",
                                signal_name(status->stop_signal, signal));
}

static json_t *container_status_to_json(JsonWriter *writer, const Pod *pod,
                                        const ContainerStatus *status) {
        const Container *container = pod_find_container(pod, strna(status->name));
        json_t *json = json_object();

        json_put(writer, json, "name", string_to_json(strna(status->name)));
        json_put(writer, json, "state", container_state_to_json(writer, &status->state));
        json_put(writer, json, "lastState", container_state_to_json(writer, &status->last_state));
        json_put(writer, json, "ready", json_boolean(status->ready));
        json_put(writer, json, "restartCount", json_integer(status->restart_count));
        json_put(writer, json, "image", string_to_json(strna(status->image)));
        json_put(writer, json, "imageID", string_to_json(strna(status->image_id)));
        json_put_string(writer, json, "containerID", status->container_id);
        /* The kubelet does not report it of ephemeral containers. */
        if (!container || container_role(&pod->spec, container) != ROLE_EPHEMERAL)
                json_put(writer, json, "started", json_boolean(status->started));
        if (container && status->container_id)
                put_started_container_status(writer, json, container, status);
        return json;
}

static json_t *pod_condition_to_json(JsonWriter *writer, PodConditionType type,
                                     const PodCondition *condition) {
        json_t *json = json_object();

        json_put(writer, json, "type", json_string(pod_condition_names[type]));
        json_put(writer, json, "status", json_string(condition->is_true ? "True" : "False"));
        json_put(writer, json, "lastProbeTime", json_null());
        json_put(writer, json, "lastTransitionTime", timestamp_to_json(condition->last_transition));
        json_put_string(writer, json, "reason", condition->reason);
        json_put_string(writer, json, "message", condition->message);
        return json;
}

static json_t *pod_conditions_to_json(JsonWriter *writer, const PodStatus *status) {
        json_t *array = json_array();

        for (PodConditionType type = 0; type < N_POD_CONDITIONS; type++)
                if ((status->conditions[type].is_true || !pod_condition_is_passing(type)) &&
                    (type != CONDITION_ALL_CONTAINERS_RESTARTING || status->may_restart_all))
                        json_append(writer, array,
                                    pod_condition_to_json(writer, type, &status->conditions[type]));
        return array;
}

static void put_container_statuses(JsonWriter *writer, json_t *json, const char *key,
                                   const Pod *pod, const ContainerStatusList *list) {
        json_t *array;

        if (list->n == 0)
                return;
        array = json_array();
        for (size_t i = 0; i < list->n; i++)
                json_append(writer, array, container_status_to_json(writer, pod, &list->items[i]));
        json_put(writer, json, key, array);
}

static void append_address(JsonWriter *writer, json_t *list, const char *address) {
        json_t *entry = json_object();

        json_put(writer, entry, "ip", string_to_json(address));
        json_append(writer, list, entry);
}

/* "podIP" and "podIPs", which also holds the address of the other family. */
static void put_address(JsonWriter *writer, json_t *json, const char *key, const char *list_key,
                        const char *address, const char *other) {
        json_t *list;

        if (!address || !address[0])
                return;
        json_put(writer, json, key, string_to_json(address));
        list = json_array();
        append_address(writer, list, address);
        if (other)
                append_address(writer, list, other);
        json_put(writer, json, list_key, list);
}

/* What the pod has been given as a whole, and, unless a resize is under way, has. */
static void put_pod_resources(JsonWriter *writer, json_t *json, const Pod *pod,
                              const PodStatus *status) {
        bool is_resizing = status->conditions[CONDITION_RESIZE_IN_PROGRESS].is_true;
        ResourceRequirements total = { 0 };

        if (pod_total_resources(&pod->spec, &total) >= 0) {
                put_if_not_empty(
                        writer, json, "allocatedResources",
                        object_to_json_by_schema(writer, &resource_list_schema, &total.requests));
                if (!is_resizing)
                        put_if_not_empty(writer, json, "resources",
                                         object_to_json_by_schema(
                                                 writer, &resource_requirements_schema, &total));
        }
        schema_done(&resource_requirements_schema, &total);
}

static json_t *pod_status_to_json(JsonWriter *writer, const Pod *pod, const PodStatus *status) {
        json_t *json = json_object();

        json_put(writer, json, "phase", json_string(pod_phase_names[status->phase]));
        if (!status->is_rejected)
                json_put(writer, json, "conditions", pod_conditions_to_json(writer, status));
        json_put_string(writer, json, "message", status->message);
        json_put_string(writer, json, "reason", status->reason);
        put_address(writer, json, "hostIP", "hostIPs", status->host_ip, NULL);
        put_address(writer, json, "podIP", "podIPs", status->pod_ip, status->other_pod_ip);
        if (status->start_time > 0)
                json_put(writer, json, "startTime", timestamp_to_json(status->start_time));
        put_container_statuses(writer, json, "initContainerStatuses", pod,
                               &status->init_containers);
        put_container_statuses(writer, json, "containerStatuses", pod, &status->containers);
        put_container_statuses(writer, json, "ephemeralContainerStatuses", pod,
                               &status->ephemeral_containers);
        json_put(writer, json, "qosClass", json_string(qos_class_names[status->qos_class]));
        if (!status->is_rejected && status->containers.n > 0)
                put_pod_resources(writer, json, pod, status);
        return json;
}

/* The times of metadata come from the status; their position is that of their rows. */
static void put_metadata_time(JsonWriter *writer, json_t *json, const char *key, const Pod *pod,
                              const PodStatus *status) {
        if (streq(key, "creationTimestamp") && status->start_time > 0)
                json_put(writer, json, key, timestamp_to_json(status->start_time));
        if (status->deletion_time == 0)
                return;
        if (streq(key, "deletionTimestamp"))
                json_put(writer, json, key, timestamp_to_json(status->deletion_time));
        if (streq(key, "deletionGracePeriodSeconds"))
                put_optional_int(writer, json, key, &pod->spec.termination_grace_period_seconds);
}

static json_t *pod_metadata_to_json(JsonWriter *writer, const Schema *schema, const Pod *pod,
                                    const PodStatus *status) {
        json_t *json = json_object();

        for (size_t i = 0; i < schema->n_fields; i++) {
                json_put_field(writer, json, &schema->fields[i], &pod->metadata);
                if (status && schema->fields[i].type == FIELD_IGNORED)
                        put_metadata_time(writer, json, schema->fields[i].key, pod, status);
        }
        return json;
}

static json_t *write_pod_json(JsonWriter *writer, const Pod *pod, const PodStatus *status) {
        json_t *json = json_object();

        json_put(writer, json, "kind", json_string("Pod"));
        json_put(writer, json, "apiVersion", json_string("v1"));
        json_put(writer, json, "metadata",
                 pod_metadata_to_json(writer, &object_meta_schema, pod, status));
        json_put(writer, json, "spec",
                 object_to_json_by_schema(writer, &pod_spec_schema, &pod->spec));
        if (status)
                json_put(writer, json, "status", pod_status_to_json(writer, pod, status));
        return json;
}

static char *json_writer_finish(const JsonWriter *writer, const json_t *json) {
        return writer->has_failed || !json ? NULL : json_dumps(json, JSON_COMPACT);
}

static json_t *json_writer_finish_tree(const JsonWriter *writer, json_t *json) {
        if (!writer->has_failed)
                return json;
        json_decref(json);
        return NULL;
}

json_t *pod_to_json_tree(const Pod *pod, const PodStatus *status) {
        JsonWriter writer = { 0 };
        json_t *json = write_pod_json(&writer, pod, status);

        return json_writer_finish_tree(&writer, json);
}

json_t *pod_status_to_json_tree(const Pod *pod, const PodStatus *status) {
        JsonWriter writer = { 0 };
        json_t *json = pod_status_to_json(&writer, pod, status);

        return json_writer_finish_tree(&writer, json);
}

char *pod_to_json(const Pod *pod, const PodStatus *status) {
        JsonWriter writer = { 0 };
        cleanup_with(json_decrefp) json_t *json = write_pod_json(&writer, pod, status);

        return json_writer_finish(&writer, json);
}

char *pod_to_json_from(const Pod *pod, const PodStatus *status, const char *source) {
        JsonWriter writer = { 0 };
        cleanup_with(json_decrefp) json_t *json = write_pod_json(&writer, pod, status);
        json_t *metadata = json_object_get(json, "metadata");
        json_t *annotations = json_object_get(metadata, "annotations");

        if (!annotations) {
                annotations = json_object();
                json_put(&writer, metadata, "annotations", annotations);
        }
        json_put_string(&writer, annotations, SOURCE_ANNOTATION, source);
        return json_writer_finish(&writer, json);
}

char *object_to_json(const Schema *schema, const void *object) {
        JsonWriter writer = { 0 };
        cleanup_with(json_decrefp) json_t *json = object_to_json_by_schema(&writer, schema, object);

        return json_writer_finish(&writer, json);
}

char *pod_spec_to_json(const PodSpec *spec) {
        JsonWriter writer = { 0 };
        cleanup_with(json_decrefp) json_t *json =
                object_to_json_by_schema(&writer, &pod_spec_schema, spec);

        return json_writer_finish(&writer, json);
}

bool is_json_object(const char *data, size_t length) {
        json_t *json = json_loadb(data, length, 0, NULL);
        bool is_object = json_is_object(json);

        json_decref(json);
        return is_object;
}
