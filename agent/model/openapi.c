/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/model/openapi.h"

#include "agent/model/object.h"
#include "agent/model/schema.h"
#include "common/cleanup.h"
#include "common/json-text.h"

#include <stdio.h>

enum {
        SCHEMAS_MAX = 256,
        NAME_SIZE = 128,
};

/* The schemas that the document contains or will contain; a schema's number is its position. */
typedef struct OpenapiSchemas {
        const Schema *items[SCHEMAS_MAX];
        size_t n;
} OpenapiSchemas;

/* Two nested types may have the same name: the second one's name gets its number. */
static void format_schema_name(const OpenapiSchemas *schemas, size_t number, char name[NAME_SIZE]) {
        for (size_t i = 0; i < number; i++)
                if (streq(schemas->items[i]->name, schemas->items[number]->name)) {
                        (void) snprintf(name, NAME_SIZE, OPENAPI_PREFIX "%zu.%s", number,
                                        schemas->items[number]->name);
                        return;
                }
        (void) snprintf(name, NAME_SIZE, OPENAPI_PREFIX "%s", schemas->items[number]->name);
}

static json_t *refer_to_name(const char *name) {
        return json_pack("{s:s+}", "$ref", "#/components/schemas/", name);
}

static json_t *refer_to_schema(OpenapiSchemas *schemas, const Schema *schema) {
        char name[NAME_SIZE];
        size_t i = 0;

        while (i < schemas->n && schemas->items[i] != schema)
                i++;
        if (i == SCHEMAS_MAX)
                return json_pack("{s:s}", "type", "object");
        if (i == schemas->n)
                schemas->items[schemas->n++] = schema;
        format_schema_name(schemas, i, name);
        return refer_to_name(name);
}

static json_t *describe_map_type(OpenapiSchemas *schemas, const Schema *schema);

static json_t *describe_type(OpenapiSchemas *schemas, const Field *field) {
        switch (field->type) {
        case FIELD_STRING:
                return json_pack("{s:s}", "type", "string");
        case FIELD_BOOL:
        case FIELD_OPTIONAL_BOOL:
                return json_pack("{s:s}", "type", "boolean");
        case FIELD_INT:
                return json_pack("{s:s}", "type", "integer");
        case FIELD_INTS:
                return json_pack("{s:s, s:{s:s}}", "type", "array", "items", "type", "integer");
        case FIELD_INT_OR_STRING:
        case FIELD_PORT:
                return refer_to_name(OPENAPI_PREFIX "IntOrString");
        case FIELD_QUANTITY:
                return refer_to_name(OPENAPI_PREFIX "Quantity");
        case FIELD_ENUM:
                return json_pack("{s:s, s:[]}", "type", "string", "enum");
        case FIELD_STRINGS:
                return json_pack("{s:s, s:{s:s}}", "type", "array", "items", "type", "string");
        case FIELD_STRING_MAP:
                return json_pack("{s:s, s:{s:s}}", "type", "object", "additionalProperties", "type",
                                 "string");
        case FIELD_OBJECT:
        case FIELD_OPTIONAL:
                return refer_to_schema(schemas, field->schema);
        case FIELD_LIST:
                return json_pack("{s:s, s:o}", "type", "array", "items",
                                 refer_to_schema(schemas, field->schema));
        case FIELD_MAP:
        case FIELD_REST:
                return describe_map_type(schemas, field->schema);
        case FIELD_PRESENT:
        case FIELD_REFUSED:
        case FIELD_IGNORED:
        case N_FIELD_TYPES:
                break;
        }
        return json_pack("{s:s}", "type", "object");
}

/* The schema's second row describes the values. */
static json_t *describe_map_type(OpenapiSchemas *schemas, const Schema *schema) {
        return json_pack("{s:s, s:o}", "type", "object", "additionalProperties",
                         describe_type(schemas, &schema->fields[1]));
}

static json_t *describe_support(const Field *field) {
        const char *reason = field->reason ? field->reason : "Mainstay does not support it yet";

        if (field->type == FIELD_IGNORED || field->is_only_warned_of)
                return json_string("Has no effect in a manifest.");
        if (field->type == FIELD_REFUSED || field->is_api_only)
                return json_sprintf("Is an error in a manifest: %s.", reason);
        return NULL;
}

static json_t *describe_field(OpenapiSchemas *schemas, const Field *field) {
        json_t *json = describe_type(schemas, field);
        json_t *names = json_object_get(json, "enum");

        for (size_t i = 0; names && i < field_count_names(field); i++)
                if (field->names[i])
                        (void) json_array_append_new(names, json_string(field->names[i]));
        if (field->type == FIELD_INT && field->min < field->max) {
                (void) json_object_set_new(json, "minimum", json_integer(field->min));
                (void) json_object_set_new(json, "maximum", json_integer(field->max));
        }
        (void) json_object_set_new(json, "description", describe_support(field));
        return json;
}

static json_t *describe_schema(OpenapiSchemas *schemas, const Schema *schema) {
        cleanup_json json_t *properties = json_object(), *required = json_array();

        for (size_t i = 0; i < schema->n_fields; i++) {
                const Field *field = &schema->fields[i];

                (void) json_object_set_new(properties, field->key, describe_field(schemas, field));
                if (field->is_required)
                        (void) json_array_append_new(required, json_string(field->key));
        }
        return json_pack("{s:s, s:O, s:O}", "type", "object", "properties", properties, "required",
                         required);
}

/* Kinds have the members kind and apiVersion; some of their tables begin with these. */
static void add_type_members(json_t *schema) {
        json_t *properties = json_object_get(schema, "properties");

        (void) json_object_set_new(properties, "apiVersion", json_pack("{s:s}", "type", "string"));
        (void) json_object_set_new(properties, "kind", json_pack("{s:s}", "type", "string"));
        (void) json_object_set_new(
                schema, "description",
                json_string("The fields of a manifest on this node. mainstay-pods(7) and "
                            "mainstay-daemonsets(7) describe them; the Kubernetes documentation "
                            "says what they mean; mainstay validate FILE checks a manifest."));
}

/* Each schema adds those that it references. */
char *openapi_schemas_to_json(void) {
        const Schema *const kinds[] = {
                &pod_schema,
                &daemonset_schema,
                object_schemas[OBJECT_CONFIG_MAP],
                object_schemas[OBJECT_SECRET],
                object_schemas[OBJECT_PRIORITY_CLASS],
                object_schemas[OBJECT_RUNTIME_CLASS],
        };
        cleanup_json json_t *all =
                json_pack("{s:{s:s}, s:{s:s}}", OPENAPI_PREFIX "IntOrString", "description",
                          "An integer or a string.", OPENAPI_PREFIX "Quantity", "description",
                          "A quantity, such as 0.5, 100m or 64Mi.");
        OpenapiSchemas schemas = { 0 };
        char name[NAME_SIZE];

        for (size_t i = 0; i < N_ELEMENTS(kinds); i++)
                schemas.items[schemas.n++] = kinds[i];
        for (size_t i = 0; i < schemas.n; i++) {
                json_t *schema = describe_schema(&schemas, schemas.items[i]);

                if (i < N_ELEMENTS(kinds))
                        add_type_members(schema);
                format_schema_name(&schemas, i, name);
                (void) json_object_set_new(all, name, schema);
        }
        return all ? json_to_text(all, JSON_COMPACT) : NULL;
}
