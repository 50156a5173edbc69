/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/model/openapi.h"

#include "agent/model/hidden-value.h"
#include "common/cleanup.h"
#include "common/json-text.h"
#include "tests/test.h"

/* Returns the schema to which a reference, or the items of a list, leads. */
static json_t *follow_reference(const json_t *schemas, const json_t *type) {
        const json_t *items = json_object_get(type, "items");
        const char *reference = strna(json_text(items ? items : type, "$ref"));

        return json_object_get(schemas, reference + strlen("#/components/schemas/"));
}

static const json_t *field_of(const json_t *schema, const char *name) {
        return json_at(schema, "properties", name);
}

TEST(the_schemas_match_the_field_tables)
{
        cleanup_free char *text = openapi_schemas_to_json();
        cleanup_json json_t *schemas = text ? json_loads(text, 0, NULL) : NULL;
        const json_t *pod = json_object_get(schemas, OPENAPI_PREFIX "Pod");
        const json_t *spec = follow_reference(schemas, field_of(pod, "spec"));
        const json_t *container = follow_reference(schemas, field_of(spec, "containers"));

        EXPECT_STREQ(json_text(field_of(pod, "kind"), "type"), "string");
        EXPECT_STREQ(json_text(field_of(container, "image"), "type"), "string");
        EXPECT_STREQ(json_text(field_of(container, "stdin"), "type"), "boolean");
        EXPECT_STREQ(json_text(field_of(spec, "nodeSelector"), "additionalProperties", "type"),
                     "string");
        EXPECT_STREQ(json_string_value(json_array_get(
                             json_object_get(field_of(spec, "restartPolicy"), "enum"), 0)),
                     "Always");
        EXPECT_STREQ(json_string_value(json_array_get(json_object_get(spec, "required"), 0)),
                     "containers");
        EXPECT(json_object_get(schemas, OPENAPI_PREFIX "DaemonSet"));
        EXPECT(json_object_get(schemas, OPENAPI_PREFIX "Secret"));
}

TEST(every_reference_resolves_to_a_schema)
{
        cleanup_free char *text = openapi_schemas_to_json();
        cleanup_json json_t *schemas = text ? json_loads(text, 0, NULL) : NULL;
        const char *name, *key;
        json_t *schema, *field;

        json_object_foreach(schemas, name, schema)
                json_object_foreach(json_object_get(schema, "properties"), key, field) {
                        const json_t *items = json_object_get(field, "items");

                        if (json_object_get(items ? items : field, "$ref"))
                                EXPECT(follow_reference(schemas, field));
                }
}

TEST(unsupported_fields_have_a_reason)
{
        cleanup_free char *text = openapi_schemas_to_json();
        cleanup_json json_t *schemas = text ? json_loads(text, 0, NULL) : NULL;
        const json_t *volume = json_object_get(schemas, OPENAPI_PREFIX "Volume");
        const char *description = json_text(field_of(volume, "gitRepo"), "description");

        EXPECT(description && strstr(description, "Is an error in a manifest: "));
}

TEST(a_hidden_value_has_a_length_only)
{
        char text[HIDDEN_VALUE_SIZE];
        size_t length = 7;

        EXPECT_STREQ(hidden_value_format(text, 5), "<hidden, 5 bytes>");
        EXPECT(hidden_value_parse("<hidden, 1048576 bytes>", &length));
        EXPECT_EQ(length, 1048576);
        EXPECT(!hidden_value_parse("<hidden, 05 bytes>", &length));
        EXPECT(!hidden_value_parse("<hidden, -5 bytes>", &length));
        EXPECT(!hidden_value_parse("<hidden,  bytes>", &length));
        EXPECT(!hidden_value_parse("hello", &length));
        EXPECT(!hidden_value_parse("", &length));
}
