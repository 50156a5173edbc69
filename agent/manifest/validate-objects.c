/* SPDX-License-Identifier: Apache-2.0 */

/* ConfigMap and Secret from files: Kubernetes' validation rules, and decoding of their values. No
 * message of this file shows a value. */

#include "agent/manifest/validate-pod.h"
#include "agent/model/names.h"
#include "common/base64.h"
#include "common/cleanup.h"

/* The place of an error in a document: "data[key]", with its node. */
typedef struct ObjectPosition {
        Decoder *decoder;
        const YamlNode *object;
        const DecodePath *path;
        const char *map;
        const char *key; /* NULL: the map itself */
} ObjectPosition;

static int object_error_at(const ObjectPosition *position, int r) {
        const DecodePath map = { .parent = position->path, .key = position->map };
        const DecodePath entry = { .parent = &map, .key = position->key, .is_map_key = true };
        const YamlNode *node = yaml_node_get(position->object, position->map);
        const YamlNode *value = node && position->key ? yaml_node_get(node, position->key) : NULL;

        return decode_error_at(position->decoder,
                               value  ? value
                               : node ? node
                                      : position->object,
                               position->key ? &entry : &map, r);
}

static int decode_object_value(const ObjectPosition *position, KeyValue *from, bool is_base64,
                               ObjectValue *ret) {
        Error *reterr = position->decoder->reterr;
        bool is_text_elsewhere = streq(position->map, "data");
        int r = from->key[0] ? check_data_key(from->key, reterr)
                             : error_setf(reterr, EINVAL, "must not be empty");

        if (r < 0)
                return object_error_at(position, r);
        if (!is_base64) {
                ret->bytes = TAKE_PTR(from->value);
                ret->length = strlen(ret->bytes);
                return 0;
        }
        r = base64_decode(from->value, &ret->bytes, &ret->length);
        explicit_bzero(from->value, strlen(from->value));
        if (r == -EINVAL)
                return object_error_at(
                        position,
                        error_setf(reterr, EINVAL, "must be base64%s",
                                   is_text_elsewhere ? "; text belongs into stringData" : ""));
        return r;
}

static void object_value_done(ObjectValue *value) {
        free(value->key);
        free(value->bytes);
}

/* Appends the values of one map, moving them out of it. */
static int move_map_values(const ObjectPosition *map_position, DataObject *object, StringMap *map,
                           bool is_base64) {
        for (size_t i = 0; i < map->n; i++) {
                cleanup_with(object_value_done) ObjectValue value = {
                        .is_binary = map == &object->binary_data,
                };
                ObjectPosition position = *map_position;
                int r;

                position.key = map->items[i].key;
                r = decode_object_value(&position, &map->items[i], is_base64, &value);
                if (r < 0)
                        return r;
                value.key = strdup(map->items[i].key);
                if (!value.key)
                        return -ENOMEM;
                object->values.items[object->values.n++] = value;
                value = (ObjectValue){ 0 };
        }
        return 0;
}

/* Compares by key and, for equal keys, by the order in which they were added. */
static int compare_values(const void *a, const void *b) {
        const ObjectValue *x = a, *y = b;
        int r = strcmp(x->key, y->key);

        return r != 0 ? r : x->is_later - y->is_later;
}

/* In a Secret, stringData overrides data; in a ConfigMap a key must not be in both maps. */
static int merge_duplicate_values(ObjectPosition *map_position, DataObject *object) {
        size_t n = 0;

        for (size_t i = 0; i < object->values.n; i++) {
                ObjectValue *value = &object->values.items[i];
                ObjectValue *last = n > 0 ? &object->values.items[n - 1] : NULL;

                if (!last || !streq(last->key, value->key)) {
                        object->values.items[n++] = *value;
                        continue;
                }
                if (object->kind == OBJECT_CONFIG_MAP) {
                        map_position->map = "binaryData";
                        map_position->key = value->key;
                        return object_error_at(
                                map_position,
                                error_setf(map_position->decoder->reterr, EINVAL,
                                           "must be unique; it is also a key of data"));
                }
                object_value_done(last);
                *last = *value;
        }
        object->values.n = n;
        return 0;
}

static int check_object_size(const ObjectPosition *map_position, const DataObject *object) {
        size_t size = 0;

        for (size_t i = 0; i < object->values.n; i++)
                size += object->values.items[i].length;
        if (size <= OBJECT_BYTES_MAX)
                return 0;
        return object_error_at(map_position,
                               error_setf(map_position->decoder->reterr, EINVAL,
                                          "must be at most %zu bytes together, not %zu",
                                          OBJECT_BYTES_MAX, size));
}

static int fill_object_values(ObjectPosition *map_position, DataObject *object) {
        bool is_secret = object->kind == OBJECT_SECRET;
        StringMap *second = is_secret ? &object->string_data : &object->binary_data;
        size_t n;
        int r;

        object->values.items =
                calloc(object->data.n + second->n + 1, sizeof(*object->values.items));
        if (!object->values.items)
                return -ENOMEM;
        r = move_map_values(map_position, object, &object->data, is_secret);
        if (r < 0)
                return r;
        n = object->values.n;
        map_position->map = is_secret ? "stringData" : "binaryData";
        r = move_map_values(map_position, object, second, !is_secret);
        if (r < 0)
                return r;
        for (size_t i = n; i < object->values.n; i++)
                object->values.items[i].is_later = true;
        if (object->values.n > 0)
                qsort(object->values.items, object->values.n, sizeof(*object->values.items),
                      compare_values);
        r = merge_duplicate_values(map_position, object);
        if (r < 0)
                return r;
        map_position->map = "data";
        return check_object_size(map_position, object);
}

static int check_secret(ObjectPosition *map_position, DataObject *object) {
        int r = secret_mark_encrypted(object, &map_position->map, &map_position->key,
                                      map_position->decoder->reterr);

        if (r >= 0)
                r = secret_check_type(object, &map_position->map, &map_position->key,
                                      map_position->decoder->reterr);

        return r < 0 ? object_error_at(map_position, r) : 0;
}

static int check_object_metadata(const ObjectPosition *map_position, const DataObject *object) {
        const Rules rules = {
                .decoder = map_position->decoder,
                .root = map_position->object,
                .path = map_position->path,
                .reterr = map_position->decoder->reterr,
        };

        return check_metadata(&rules, &object->metadata);
}

static int set_object_defaults(DataObject *object) {
        if (!object->metadata.namespace)
                object->metadata.namespace = strdup("default");
        if (object->kind == OBJECT_SECRET && !object->type)
                object->type = strdup("Opaque");
        return object->metadata.namespace && (object->kind != OBJECT_SECRET || object->type)
                       ? 0
                       : -ENOMEM;
}

/* The values have been decoded; the text would only double the memory. */
static void drop_maps(DataObject *object) {
        StringMap *maps[] = { &object->data, &object->binary_data, &object->string_data };

        for (size_t i = 0; i < N_ELEMENTS(maps); i++) {
                for (size_t j = 0; j < maps[i]->n; j++) {
                        free(maps[i]->items[j].key);
                        free(maps[i]->items[j].value);
                }
                free(maps[i]->items);
                *maps[i] = (StringMap){ 0 };
        }
}

int data_object_parse(Decoder *decoder, const YamlNode *node, const DecodePath *path,
                      ObjectKind kind, DataObject **ret) {
        cleanup_with(data_object_freep) DataObject *object = calloc(1, sizeof(*object));
        ObjectPosition map_position = {
                .decoder = decoder, .object = node, .path = path, .map = "data"
        };
        int r;

        if (!object)
                return -ENOMEM;
        object->kind = kind;
        r = decode_object(decoder, node, object_schemas[kind], path, object);
        if (r < 0)
                return r;
        r = set_object_defaults(object);
        if (r < 0)
                return r;
        r = check_object_metadata(&map_position, object);
        if (r < 0)
                return r;
        r = fill_object_values(&map_position, object);
        if (r < 0)
                return r;
        /* An API server has checked the value, and only confined processes parse content from
         * users. */
        if (kind == OBJECT_SECRET && decoder->mode != DECODE_API)
                r = check_secret(&map_position, object);
        if (r < 0)
                return r;
        drop_maps(object);
        *ret = TAKE_PTR(object);
        return 0;
}
