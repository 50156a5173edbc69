/* SPDX-License-Identifier: Apache-2.0 */
/* ConfigMaps, Secrets, PriorityClasses and RuntimeClasses as API JSON. */

#include "agent/model/hidden-value.h"
#include "agent/model/json.h"
#include "agent/model/own-keys.h"

#include "common/base64.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/json-text.h"
#include "common/utf8.h"

#include <jansson.h>

/* Shows the length instead of the value. */
static json_t *redacted_value_to_json(const ObjectValue *value) {
        char text[HIDDEN_VALUE_SIZE];

        return json_string(hidden_value_format(text, value->length));
}

static json_t *base64_value_to_json(const ObjectValue *value) {
        cleanup_free char *text = malloc((value->length + 2) / 3 * 4 + 1);

        if (!text)
                return NULL;
        base64_encode(value->bytes, value->length, text);
        return json_string(text);
}

static json_t *object_value_to_json(const DataObject *object, const ObjectValue *value) {
        if (object->kind == OBJECT_SECRET)
                return redacted_value_to_json(value);
        if (value->is_binary || !utf8_is_text(value->bytes, value->length))
                return base64_value_to_json(value);
        return json_stringn(value->bytes, value->length);
}

static json_t *object_map_to_json(const StringMap *map) {
        json_t *object = json_object();

        for (size_t i = 0; i < map->n; i++)
                (void) json_object_set_new(object, map->items[i].key,
                                           json_string(map->items[i].value));
        return object;
}

#define LAST_APPLIED "kubectl.kubernetes.io/last-applied-configuration"

/* kubectl apply stores a copy of the whole object, with a Secret's values, in an annotation. */
static json_t *object_annotations_to_json(const DataObject *object, const char *source) {
        json_t *annotations = object_map_to_json(&object->metadata.annotations);

        if (object->kind == OBJECT_SECRET)
                (void) json_object_del(annotations, LAST_APPLIED);
        (void) own_json_set_new(annotations, OWN_KEY_SOURCE, json_string(source));
        return annotations;
}

static json_t *object_metadata_to_json(const DataObject *object, uint64_t created_at,
                                       const char *source) {
        const ObjectMeta *metadata = &object->metadata;
        char created[RFC3339_SIZE];
        json_t *json = json_pack("{s:s}", "name", metadata->name);

        if (metadata->namespace[0]) /* classes have no namespace */
                (void) json_object_set_new(json, "namespace", json_string(metadata->namespace));
        if (created_at > 0)
                (void) json_object_set_new(json, "creationTimestamp",
                                           json_string(format_rfc3339(created, created_at)));
        if (metadata->labels.n > 0)
                (void) json_object_set_new(json, "labels", object_map_to_json(&metadata->labels));
        (void) json_object_set_new(json, "annotations", object_annotations_to_json(object, source));
        return json;
}

/* The values from one of the object's two maps; NULL if it is empty. */
static json_t *object_values_to_json(const DataObject *object, bool binary) {
        json_t *map = json_object();

        for (size_t i = 0; i < object->values.n; i++) {
                const ObjectValue *value = &object->values.items[i];
                bool is_binary = object->kind == OBJECT_CONFIG_MAP && value->is_binary;

                if (is_binary == binary)
                        (void) json_object_set_new(map, value->key,
                                                   object_value_to_json(object, value));
        }
        if (json_object_size(map) > 0)
                return map;
        json_decref(map);
        return NULL;
}

static void put_object_values(json_t *json, const DataObject *object) {
        static const char *const maps[] = { "data", "binaryData" };

        for (size_t i = 0; i < N_ELEMENTS(maps); i++) {
                json_t *values = object_values_to_json(object, /* binary= */ i == 1);

                if (values)
                        (void) json_object_set_new(json, maps[i], values);
        }
        if (object->kind == OBJECT_SECRET)
                (void) json_object_set_new(json, "type", json_string(strna(object->type)));
        if (object->immutable)
                (void) json_object_set_new(json, "immutable", json_true());
}

/* All fields of a class except its metadata. */
static void put_object_fields(json_t *json, const DataObject *object) {
        cleanup_free char *text = object_to_json(object_schemas[object->kind], object);
        json_t *fields = text ? json_loads(text, 0, NULL) : NULL;

        (void) json_object_update_missing(json, fields);
        json_decref(fields);
}

char *data_object_to_json(const DataObject *object, uint64_t created_at, const char *source) {
        json_t *json = json_pack("{s:s, s:s, s:o}", "kind", object_kind_names[object->kind],
                                 "apiVersion", object_kind_versions[object->kind], "metadata",
                                 object_metadata_to_json(object, created_at, source));
        char *text;

        if (!json)
                return NULL;
        if (object_kind_is_cluster_wide(object->kind))
                put_object_fields(json, object);
        else
                put_object_values(json, object);
        text = json_to_text(json, JSON_COMPACT);
        json_decref(json);
        return text;
}
