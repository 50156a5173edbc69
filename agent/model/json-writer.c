/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/model/json-writer.h"

#include "agent/model/quantity.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/json-text.h"
#include "common/url-escape.h"

void json_writer_put(JsonWriter *writer, json_t *object, const char *key, json_t *value) {
        if (!value || json_object_set_new_nocheck(object, key, value) < 0)
                writer->has_failed = true;
}

void json_writer_append(JsonWriter *writer, json_t *array, json_t *value) {
        if (!value || json_array_append_new(array, value) < 0)
                writer->has_failed = true;
}

json_t *json_writer_string(const char *string) {
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

void json_writer_put_string(JsonWriter *writer, json_t *object, const char *key,
                            const char *string) {
        if (string && string[0])
                json_writer_put(writer, object, key, json_writer_string(string));
}

json_t *json_writer_timestamp(uint64_t realtime_usec) {
        char buffer[RFC3339_SIZE];

        return realtime_usec > 0 ? json_string(format_rfc3339(buffer, realtime_usec)) : json_null();
}

static json_t *strings_field_to_json(JsonWriter *writer, char *const *strings) {
        json_t *array = json_array();

        for (size_t i = 0; strings[i]; i++)
                json_writer_append(writer, array, json_writer_string(strings[i]));
        return array;
}

static json_t *string_map_to_json(JsonWriter *writer, const StringMap *map) {
        json_t *object = json_object();

        for (size_t i = 0; i < map->n; i++)
                json_writer_put(writer, object, map->items[i].key,
                                json_writer_string(strna(map->items[i].value)));
        return object;
}

static json_t *list_to_json(JsonWriter *writer, const Field *field, const List *list) {
        json_t *array = json_array();

        for (size_t i = 0; i < list->n; i++)
                json_writer_append(
                        writer, array,
                        json_writer_object(writer, field->schema,
                                           (const char *) list->items + i * field->schema->size));
        return array;
}

static void put_enum(JsonWriter *writer, json_t *json, const Field *field, const void *at) {
        unsigned value;

        memcpy(&value, at, sizeof(value));
        if (value > 0 && (value < field->n_names || value == field->other))
                json_writer_put(writer, json, field->key, json_string(field->names[value]));
}

/* Loads the pointer of a string, a string array or an optional object. */
static void *load_pointer(const void *at) {
        void *pointer;

        memcpy(&pointer, at, sizeof(pointer));
        return pointer;
}

/* URLs in settings may contain passwords. */
static void put_masked_url(JsonWriter *writer, json_t *json, const char *key, const char *url) {
        cleanup_free char *masked = url_mask_secrets(url);

        if (!masked)
                writer->has_failed = true;
        json_writer_put_string(writer, json, key, masked);
}

static void put_pointer(JsonWriter *writer, json_t *json, const Field *field, void *pointer) {
        if (!pointer)
                return;
        if (field->type == FIELD_STRING && field->is_secret)
                put_masked_url(writer, json, field->key, pointer);
        else if (field->type == FIELD_STRING)
                json_writer_put_string(writer, json, field->key, pointer);
        else if (field->type == FIELD_STRINGS)
                json_writer_put(writer, json, field->key, strings_field_to_json(writer, pointer));
        else
                json_writer_put(writer, json, field->key,
                                json_writer_object(writer, field->schema, pointer));
}

void json_writer_put_optional_int(JsonWriter *writer, json_t *json, const char *key,
                                  const OptionalInt *number) {
        if (number->is_set)
                json_writer_put(writer, json, key, json_integer(number->value));
}

static void put_int_or_string(JsonWriter *writer, json_t *json, const char *key,
                              const IntOrString *value) {
        if (value->text)
                json_writer_put_string(writer, json, key, value->text);
        else
                json_writer_put_optional_int(writer, json, key, &value->number);
}

static void put_optional_bool(JsonWriter *writer, json_t *json, const char *key,
                              const OptionalBool *value) {
        if (value->is_set)
                json_writer_put(writer, json, key, json_boolean(value->value));
}

void json_writer_put_ints(JsonWriter *writer, json_t *json, const char *key, const IntList *list) {
        json_t *array = json_array();

        for (size_t i = 0; i < list->n; i++)
                json_writer_append(writer, array, json_integer(list->items[i]));
        if (list->n > 0)
                json_writer_put(writer, json, key, array);
        else
                json_decref(array);
}

/* An embedded object without set fields is omitted. */
static void put_embedded(JsonWriter *writer, json_t *json, const Field *field, const void *at) {
        json_t *value = json_writer_object(writer, field->schema, at);

        if (!value || json_object_size(value) > 0)
                json_writer_put(writer, json, field->key, value);
        else
                json_decref(value);
}

static void put_list(JsonWriter *writer, json_t *json, const Field *field, const void *object) {
        List list = field_list(field, object);

        if (list.n > 0)
                json_writer_put(writer, json, field->key, list_to_json(writer, field, &list));
}

/* Secret values are omitted, as in the kubelet's log. */
static void put_entries(JsonWriter *writer, json_t *map, const Field *field, const void *object) {
        List list = field_list(field, object);

        for (size_t i = 0; i < list.n; i++) {
                const char *entry = (const char *) list.items + i * field->schema->size;
                Field value = field->schema->fields[1];

                value.key = load_pointer(field_at_const(&field->schema->fields[0], entry));
                if (field->is_secret)
                        json_writer_put(writer, map, value.key, json_pack("[s]", "<masked>"));
                else
                        json_writer_put_field(writer, map, &value, entry);
        }
}

static void put_map(JsonWriter *writer, json_t *json, const Field *field, const void *object) {
        json_t *map = json_object();

        put_entries(writer, map, field, object);
        if (field_list(field, object).n > 0)
                json_writer_put(writer, json, field->key, map);
        else
                json_decref(map);
}

void json_writer_put_field(JsonWriter *writer, json_t *json, const Field *field,
                           const void *object) {
        const void *at = field_at_const(field, object);
        const StringMap *map = at;

        switch (field->type) {
        case FIELD_STRING:
        case FIELD_STRINGS:
        case FIELD_OPTIONAL:
                put_pointer(writer, json, field, load_pointer(at));
                break;
        case FIELD_BOOL:
                if (*(const bool *) at)
                        json_writer_put(writer, json, field->key, json_true());
                break;
        case FIELD_PRESENT:
                if (*(const bool *) at)
                        json_writer_put(writer, json, field->key, json_object());
                break;
        case FIELD_OPTIONAL_BOOL:
                put_optional_bool(writer, json, field->key, at);
                break;
        case FIELD_INT:
                json_writer_put_optional_int(writer, json, field->key, at);
                break;
        case FIELD_INTS:
                json_writer_put_ints(writer, json, field->key, at);
                break;
        case FIELD_INT_OR_STRING:
        case FIELD_PORT:
                put_int_or_string(writer, json, field->key, at);
                break;
        case FIELD_QUANTITY:
                json_writer_put_string(writer, json, field->key, ((const Quantity *) at)->text);
                break;
        case FIELD_ENUM:
                put_enum(writer, json, field, at);
                break;
        case FIELD_STRING_MAP:
                if (map->n > 0)
                        json_writer_put(writer, json, field->key, string_map_to_json(writer, map));
                break;
        case FIELD_OBJECT:
                put_embedded(writer, json, field, at);
                break;
        case FIELD_LIST:
                put_list(writer, json, field, object);
                break;
        case FIELD_MAP:
                put_map(writer, json, field, object);
                break;
        case FIELD_REST:
                put_entries(writer, json, field, object);
                break;
        case FIELD_REFUSED:
        case FIELD_IGNORED:
        case N_FIELD_TYPES:
                break;
        }
}

json_t *json_writer_object(JsonWriter *writer, const Schema *schema, const void *object) {
        json_t *json = json_object();

        for (size_t i = 0; i < schema->n_fields; i++)
                json_writer_put_field(writer, json, &schema->fields[i], object);
        return json;
}

char *json_writer_finish(const JsonWriter *writer, const json_t *json) {
        return writer->has_failed || !json ? NULL : json_to_text(json, JSON_COMPACT);
}

json_t *json_writer_finish_tree(const JsonWriter *writer, json_t *json) {
        if (!writer->has_failed)
                return json;
        json_decref(json);
        return NULL;
}
