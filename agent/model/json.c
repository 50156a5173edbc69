/* SPDX-License-Identifier: Apache-2.0 */

/* The API's JSON of our objects. The spec is written by its tables; the status, which is never
 * read, by hand. Members come in the order in which the API server prints them, which is that of
 * jansson's insertion.
 *
 * Memory may end at any of the many small allocations. They are not looked at one by one: every
 * json_…_new() call takes NULL for a value and then fails, and the Writer remembers that one did.
 */

#include "agent/model/json.h"

#include "agent/model/quantity.h"
#include "agent/model/schema.h"
#include "agent/model/signals.h"
#include "common/cleanup.h"
#include "common/clock.h"

#include <jansson.h>

typedef struct Writer {
        bool has_failed;
} Writer;

static json_t *write_object(Writer *writer, const Schema *schema, const void *object);

/* Takes the value. */
static void put(Writer *writer, json_t *object, const char *key, json_t *value) {
        if (!value || json_object_set_new_nocheck(object, key, value) < 0)
                writer->has_failed = true;
}

static void append(Writer *writer, json_t *array, json_t *value) {
        if (!value || json_array_append_new(array, value) < 0)
                writer->has_failed = true;
}

/* What containers and runtimes say need not be UTF-8; each byte that is not ASCII becomes '?' then.
 */
static json_t *text(const char *string) {
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
static void put_text(Writer *writer, json_t *object, const char *key, const char *string) {
        if (string && string[0])
                put(writer, object, key, text(string));
}

static json_t *timestamp(uint64_t realtime_usec) {
        char buffer[RFC3339_SIZE];

        return realtime_usec > 0 ? json_string(format_rfc3339(buffer, realtime_usec)) : json_null();
}

static json_t *write_strings(Writer *writer, char *const *strings) {
        json_t *array = json_array();

        for (size_t i = 0; strings[i]; i++)
                append(writer, array, text(strings[i]));
        return array;
}

static json_t *write_string_map(Writer *writer, const StringMap *map) {
        json_t *object = json_object();

        for (size_t i = 0; i < map->n; i++)
                put(writer, object, map->items[i].key, text(strna(map->items[i].value)));
        return object;
}

static json_t *write_list(Writer *writer, const Field *field, const List *list) {
        json_t *array = json_array();

        for (size_t i = 0; i < list->n; i++)
                append(writer, array,
                       write_object(writer, field->schema,
                                    (const char *) list->items + i * field->schema->size));
        return array;
}

static json_t *write_enum(const Field *field, const void *at) {
        unsigned value;

        memcpy(&value, at, sizeof(value));
        return value > 0 && value < field->n_names ? json_string(field->names[value]) : NULL;
}

/* The pointer that a string, a string array and an optional object are. */
static void *pointer_in(const void *at) {
        void *pointer;

        memcpy(&pointer, at, sizeof(pointer));
        return pointer;
}

static void put_pointer(Writer *writer, json_t *json, const Field *field, void *pointer) {
        if (!pointer)
                return;
        if (field->type == FIELD_STRING)
                put_text(writer, json, field->key, pointer);
        else if (field->type == FIELD_STRINGS)
                put(writer, json, field->key, write_strings(writer, pointer));
        else
                put(writer, json, field->key, write_object(writer, field->schema, pointer));
}

static void put_optional_int(Writer *writer, json_t *json, const char *key,
                             const OptionalInt *number) {
        if (number->is_set)
                put(writer, json, key, json_integer(number->value));
}

static void put_int_or_string(Writer *writer, json_t *json, const char *key,
                              const IntOrString *value) {
        if (value->text)
                put_text(writer, json, key, value->text);
        else
                put_optional_int(writer, json, key, &value->number);
}

static void put_optional_bool(Writer *writer, json_t *json, const char *key,
                              const OptionalBool *value) {
        if (value->is_set)
                put(writer, json, key, json_boolean(value->value));
}

static void put_ints(Writer *writer, json_t *json, const char *key, const IntList *list) {
        json_t *array = json_array();

        for (size_t i = 0; i < list->n; i++)
                append(writer, array, json_integer(list->items[i]));
        if (list->n > 0)
                put(writer, json, key, array);
        else
                json_decref(array);
}

/* An embedded object of which nothing is set is left out. */
static void put_embedded(Writer *writer, json_t *json, const Field *field, const void *at) {
        json_t *value = write_object(writer, field->schema, at);

        if (json_object_size(value) > 0)
                put(writer, json, field->key, value);
        else
                json_decref(value);
}

static void put_list(Writer *writer, json_t *json, const Field *field, const void *object) {
        List list = field_list(field, object);

        if (list.n > 0)
                put(writer, json, field->key, write_list(writer, field, &list));
}

static void put_field(Writer *writer, json_t *json, const Field *field, const void *object) {
        const void *at = field_at_const(field, object);
        const StringMap *map = at;
        json_t *value;

        switch (field->type) {
        case FIELD_STRING:
        case FIELD_STRINGS:
        case FIELD_OPTIONAL:
                put_pointer(writer, json, field, pointer_in(at));
                break;
        case FIELD_BOOL:
                if (*(const bool *) at)
                        put(writer, json, field->key, json_true());
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
                put_text(writer, json, field->key, ((const Quantity *) at)->text);
                break;
        case FIELD_ENUM:
                value = write_enum(field, at);
                if (value)
                        put(writer, json, field->key, value);
                break;
        case FIELD_STRING_MAP:
                if (map->n > 0)
                        put(writer, json, field->key, write_string_map(writer, map));
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

static json_t *write_object(Writer *writer, const Schema *schema, const void *object) {
        json_t *json = json_object();

        for (size_t i = 0; i < schema->n_fields; i++)
                put_field(writer, json, &schema->fields[i], object);
        return json;
}

static json_t *write_waiting(Writer *writer, const ContainerState *state) {
        json_t *json = json_object();

        put_text(writer, json, "reason", state->reason);
        put_text(writer, json, "message", state->message);
        return json;
}

static json_t *write_running(Writer *writer, const ContainerState *state) {
        json_t *json = json_object();

        put(writer, json, "startedAt", timestamp(state->started_at));
        return json;
}

static json_t *write_terminated(Writer *writer, const ContainerState *state) {
        json_t *json = json_object();

        put(writer, json, "exitCode", json_integer(state->exit_code));
        if (state->signal != 0)
                put(writer, json, "signal", json_integer(state->signal));
        put_text(writer, json, "reason", state->reason);
        put_text(writer, json, "message", state->message);
        put(writer, json, "startedAt", timestamp(state->started_at));
        put(writer, json, "finishedAt", timestamp(state->finished_at));
        put_text(writer, json, "containerID", state->container_id);
        return json;
}

static json_t *write_state(Writer *writer, const ContainerState *state) {
        json_t *json = json_object();

        switch (state->kind) {
        case STATE_NONE:
                break;
        case STATE_WAITING:
                put(writer, json, "waiting", write_waiting(writer, state));
                break;
        case STATE_RUNNING:
                put(writer, json, "running", write_running(writer, state));
                break;
        case STATE_TERMINATED:
                put(writer, json, "terminated", write_terminated(writer, state));
                break;
        }
        return json;
}

/* As the kubelet has it: nothing is said of a mount that can be written; and "if possible" it is
 * on every kernel that we run on. */
static json_t *write_mount_status(Writer *writer, const VolumeMount *mount) {
        bool is_recursive = mount->recursive_read_only > RECURSIVE_READ_ONLY_DISABLED;
        json_t *json = json_object();

        put_text(writer, json, "name", mount->name);
        put_text(writer, json, "mountPath", mount->mount_path);
        if (!mount->read_only)
                return json;
        put(writer, json, "readOnly", json_true());
        put_text(writer, json, "recursiveReadOnly", is_recursive ? "Enabled" : "Disabled");
        return json;
}

static void put_mount_statuses(Writer *writer, json_t *json, const Container *container) {
        json_t *array;

        if (container->volume_mounts.n == 0)
                return;
        array = json_array();
        for (size_t i = 0; i < container->volume_mounts.n; i++)
                append(writer, array,
                       write_mount_status(writer, &container->volume_mounts.items[i]));
        put(writer, json, "volumeMounts", array);
}

static void put_user(Writer *writer, json_t *json, const ContainerUser *user) {
        json_t *outer = json_object(), *inner = json_object();

        put(writer, inner, "uid", json_integer(user->uid));
        put(writer, inner, "gid", json_integer(user->gid));
        put_ints(writer, inner, "supplementalGroups", &user->groups);
        put(writer, outer, "linux", inner);
        put(writer, json, "user", outer);
}

/* What there is only of a container that began. */
static void put_begun(Writer *writer, json_t *json, const Container *container,
                      const ContainerStatus *status) {
        char signal[SIGNAL_NAME_SIZE];
        json_t *allocated =
                write_object(writer, &resource_list_schema, &container->resources.requests);

        if (json_object_size(allocated) > 0)
                put(writer, json, "allocatedResources", allocated);
        else
                json_decref(allocated);
        put(writer, json, "resources",
            write_object(writer, &resource_requirements_schema, &status->resources));
        put_mount_statuses(writer, json, container);
        if (status->user.is_known)
                put_user(writer, json, &status->user);
        if (status->stop_signal > 0)
                put_text(writer, json, "stopSignal", signal_name(status->stop_signal, signal));
}

static json_t *write_container_status(Writer *writer, const Pod *pod,
                                      const ContainerStatus *status) {
        const Container *container = pod_find_container(pod, strna(status->name));
        json_t *json = json_object();

        put(writer, json, "name", text(strna(status->name)));
        put(writer, json, "state", write_state(writer, &status->state));
        put(writer, json, "lastState", write_state(writer, &status->last_state));
        put(writer, json, "ready", json_boolean(status->ready));
        put(writer, json, "restartCount", json_integer(status->restart_count));
        put(writer, json, "image", text(strna(status->image)));
        put(writer, json, "imageID", text(strna(status->image_id)));
        put_text(writer, json, "containerID", status->container_id);
        put(writer, json, "started", json_boolean(status->started));
        if (container && status->container_id)
                put_begun(writer, json, container, status);
        return json;
}

static json_t *write_condition(Writer *writer, PodConditionType type,
                               const PodCondition *condition) {
        json_t *json = json_object();

        put(writer, json, "type", json_string(pod_condition_names[type]));
        put(writer, json, "status", json_string(condition->is_true ? "True" : "False"));
        put(writer, json, "lastProbeTime", json_null());
        put(writer, json, "lastTransitionTime", timestamp(condition->last_transition));
        put_text(writer, json, "reason", condition->reason);
        put_text(writer, json, "message", condition->message);
        return json;
}

static json_t *write_conditions(Writer *writer, const PodStatus *status) {
        json_t *array = json_array();

        for (PodConditionType type = 0; type < N_POD_CONDITIONS; type++)
                if ((status->conditions[type].is_true || !pod_condition_is_passing(type)) &&
                    (type != CONDITION_ALL_CONTAINERS_RESTARTING || status->may_restart_all))
                        append(writer, array,
                               write_condition(writer, type, &status->conditions[type]));
        return array;
}

static void put_container_statuses(Writer *writer, json_t *json, const char *key, const Pod *pod,
                                   const ContainerStatusList *list) {
        json_t *array;

        if (list->n == 0)
                return;
        array = json_array();
        for (size_t i = 0; i < list->n; i++)
                append(writer, array, write_container_status(writer, pod, &list->items[i]));
        put(writer, json, key, array);
}

static void append_address(Writer *writer, json_t *list, const char *address) {
        json_t *entry = json_object();

        put(writer, entry, "ip", text(address));
        append(writer, list, entry);
}

/* "podIP" and the list that stands beside it, which has one of the other family too. */
static void put_address(Writer *writer, json_t *json, const char *key, const char *list_key,
                        const char *address, const char *other) {
        json_t *list;

        if (!address || !address[0])
                return;
        put(writer, json, key, text(address));
        list = json_array();
        append_address(writer, list, address);
        if (other)
                append_address(writer, list, other);
        put(writer, json, list_key, list);
}

static json_t *write_status(Writer *writer, const Pod *pod, const PodStatus *status) {
        json_t *json = json_object();

        put(writer, json, "phase", json_string(pod_phase_names[status->phase]));
        put(writer, json, "conditions", write_conditions(writer, status));
        put_text(writer, json, "message", status->message);
        put_text(writer, json, "reason", status->reason);
        put_address(writer, json, "hostIP", "hostIPs", status->host_ip, NULL);
        put_address(writer, json, "podIP", "podIPs", status->pod_ip, status->other_pod_ip);
        if (status->start_time > 0)
                put(writer, json, "startTime", timestamp(status->start_time));
        put_container_statuses(writer, json, "initContainerStatuses", pod,
                               &status->init_containers);
        put_container_statuses(writer, json, "containerStatuses", pod, &status->containers);
        put(writer, json, "qosClass", json_string(qos_class_names[status->qos_class]));
        return json;
}

/* The times of the metadata come from the status; their rows say where they stand. */
static void put_metadata_time(Writer *writer, json_t *json, const char *key, const Pod *pod,
                              const PodStatus *status) {
        if (streq(key, "creationTimestamp") && status->start_time > 0)
                put(writer, json, key, timestamp(status->start_time));
        if (status->deletion_time == 0)
                return;
        if (streq(key, "deletionTimestamp"))
                put(writer, json, key, timestamp(status->deletion_time));
        if (streq(key, "deletionGracePeriodSeconds"))
                put_optional_int(writer, json, key, &pod->spec.termination_grace_period_seconds);
}

static json_t *write_metadata(Writer *writer, const Schema *schema, const Pod *pod,
                              const PodStatus *status) {
        json_t *json = json_object();

        for (size_t i = 0; i < schema->n_fields; i++) {
                put_field(writer, json, &schema->fields[i], &pod->metadata);
                if (status && schema->fields[i].type == FIELD_IGNORED)
                        put_metadata_time(writer, json, schema->fields[i].key, pod, status);
        }
        return json;
}

static json_t *write_pod(Writer *writer, const Pod *pod, const PodStatus *status) {
        json_t *json = json_object();

        put(writer, json, "kind", json_string("Pod"));
        put(writer, json, "apiVersion", json_string("v1"));
        put(writer, json, "metadata", write_metadata(writer, &object_meta_schema, pod, status));
        put(writer, json, "spec", write_object(writer, &pod_spec_schema, &pod->spec));
        if (status)
                put(writer, json, "status", write_status(writer, pod, status));
        return json;
}

static char *print(const Writer *writer, const json_t *json) {
        return writer->has_failed || !json ? NULL : json_dumps(json, JSON_COMPACT);
}

char *pod_to_json(const Pod *pod, const PodStatus *status) {
        Writer writer = { 0 };
        cleanup_with(json_decrefp) json_t *json = write_pod(&writer, pod, status);

        return print(&writer, json);
}

char *pod_to_json_from(const Pod *pod, const PodStatus *status, const char *source) {
        Writer writer = { 0 };
        cleanup_with(json_decrefp) json_t *json = write_pod(&writer, pod, status);
        json_t *metadata = json_object_get(json, "metadata");
        json_t *annotations = json_object_get(metadata, "annotations");

        if (!annotations) {
                annotations = json_object();
                put(&writer, metadata, "annotations", annotations);
        }
        put_text(&writer, annotations, SOURCE_ANNOTATION, source);
        return print(&writer, json);
}

char *object_to_json(const Schema *schema, const void *object) {
        Writer writer = { 0 };
        cleanup_with(json_decrefp) json_t *json = write_object(&writer, schema, object);

        return print(&writer, json);
}

char *pod_spec_to_json(const PodSpec *spec) {
        Writer writer = { 0 };
        cleanup_with(json_decrefp) json_t *json = write_object(&writer, &pod_spec_schema, spec);

        return print(&writer, json);
}

bool is_json_object(const char *data, size_t length) {
        json_t *json = json_loadb(data, length, 0, NULL);
        bool is_object = json_is_object(json);

        json_decref(json);
        return is_object;
}
