/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/node-api/wire/protobuf-body.h"

#include "common/cleanup.h"
#include "common/json-text.h"
#include "common/protobuf.h"

#include <stdint.h>

static const char magic[] = { 'k', '8', 's', '\0' };

bool is_protobuf_body(const char *data, size_t length) {
        return length >= sizeof(magic) && memcmp(data, magic, sizeof(magic)) == 0;
}

/* ---- messages ---- */

typedef enum ProtobufBodyType {
        BODY_STRING,
        BODY_STRINGS, /* repeated */
        BODY_INTEGER,
        BODY_MESSAGE,
} ProtobufBodyType;

typedef struct ProtobufBodyField {
        unsigned number;
        const char *name; /* NULL: the end */
        ProtobufBodyType type;
        const struct ProtobufBodyField *fields; /* fields of a message */
} ProtobufBodyField;

static const ProtobufBodyField preconditions_fields[] = { { 1, "uid", BODY_STRING, NULL }, { 0 } };

static const ProtobufBodyField delete_options_fields[] = {
        { 1, "gracePeriodSeconds", BODY_INTEGER, NULL },
        { 2, "preconditions", BODY_MESSAGE, preconditions_fields },
        { 5, "dryRun", BODY_STRINGS, NULL },
        { 0 },
};

static const ProtobufBodyField resource_attributes_fields[] = {
        { 1, "namespace", BODY_STRING, NULL }, { 2, "verb", BODY_STRING, NULL },
        { 3, "group", BODY_STRING, NULL },     { 4, "version", BODY_STRING, NULL },
        { 5, "resource", BODY_STRING, NULL },  { 6, "subresource", BODY_STRING, NULL },
        { 7, "name", BODY_STRING, NULL },      { 0 },
};

static const ProtobufBodyField non_resource_attributes_fields[] = {
        { 1, "path", BODY_STRING, NULL },
        { 2, "verb", BODY_STRING, NULL },
        { 0 },
};

static const ProtobufBodyField access_spec_fields[] = {
        { 1, "resourceAttributes", BODY_MESSAGE, resource_attributes_fields },
        { 2, "nonResourceAttributes", BODY_MESSAGE, non_resource_attributes_fields },
        { 0 },
};

static const ProtobufBodyField access_review_fields[] = {
        { 2, "spec", BODY_MESSAGE, access_spec_fields },
        { 0 },
};

/* In stored objects the metadata comes first. */
static const ProtobufBodyField object_meta_fields[] = {
        { 1, "name", BODY_STRING, NULL },
        { 3, "namespace", BODY_STRING, NULL },
        { 0 },
};

static const ProtobufBodyField object_fields[] = {
        { 1, "metadata", BODY_MESSAGE, object_meta_fields },
        { 0 },
};

static const ProtobufBodyField type_meta_fields[] = {
        { 1, "apiVersion", BODY_STRING, NULL },
        { 2, "kind", BODY_STRING, NULL },
        { 0 },
};

/* ---- to JSON ---- */

static json_t *protobuf_string(const ProtobufBytes *bytes) {
        return json_stringn((const char *) bytes->at, (size_t) (bytes->end - bytes->at));
}

static const ProtobufBodyField *find_protobuf_body_field(const ProtobufBodyField *fields,
                                                         unsigned number) {
        for (; fields->name; fields++)
                if (fields->number == number)
                        return fields;
        return NULL;
}

static int append_protobuf_string(json_t *object, const char *name, const ProtobufBytes *bytes) {
        json_t *list = json_object_get(object, name);

        if (!list) {
                list = json_array();
                if (json_object_set_new(object, name, list) < 0)
                        return -ENOMEM;
        }
        return json_array_append_new(list, protobuf_string(bytes)) < 0 ? -EBADMSG : 0;
}

static json_t *parse_protobuf_message(ProtobufBytes reader, const ProtobufBodyField *fields);

static int set_protobuf_field(json_t *object, const ProtobufBodyField *field,
                              const ProtobufWireField *value) {
        json_t *json = NULL;

        if (value->wire !=
            (field->type == BODY_INTEGER ? PROTOBUF_WIRE_NUMBER : PROTOBUF_WIRE_BYTES))
                return -EBADMSG;
        switch (field->type) {
        case BODY_STRINGS:
                return append_protobuf_string(object, field->name, &value->bytes);
        case BODY_STRING:
                json = protobuf_string(&value->bytes);
                break;
        case BODY_INTEGER:
                json = json_integer((json_int_t) value->value);
                break;
        case BODY_MESSAGE:
                json = parse_protobuf_message(value->bytes, field->fields);
                break;
        }
        return json_object_set_new(object, field->name, json) < 0 ? -EBADMSG : 0;
}

/* The depth is limited by the tables. */
static json_t *parse_protobuf_message(ProtobufBytes reader, const ProtobufBodyField *fields) {
        cleanup_json json_t *object = json_object();

        while (object && reader.at < reader.end) {
                ProtobufWireField value;
                const ProtobufBodyField *field;

                if (protobuf_read_field(&reader, &value, NULL) < 0)
                        return NULL;
                field = find_protobuf_body_field(fields, value.number);
                if (field && set_protobuf_field(object, field, &value) < 0)
                        return NULL;
        }
        return json_incref(object);
}

/* The type and the message within runtime.Unknown. */
static int read_unknown(ProtobufBytes reader, json_t **ret_type, ProtobufBytes *ret_message) {
        while (reader.at < reader.end) {
                ProtobufWireField value;

                if (protobuf_read_field(&reader, &value, NULL) < 0)
                        return -EBADMSG;
                if (value.wire == PROTOBUF_WIRE_BYTES && value.number == 1) {
                        json_decref(*ret_type);
                        *ret_type = parse_protobuf_message(value.bytes, type_meta_fields);
                }
                if (value.wire == PROTOBUF_WIRE_BYTES && value.number == 2)
                        *ret_message = value.bytes;
        }
        return *ret_type ? 0 : -EBADMSG;
}

json_t *protobuf_body_parse(const char *data, size_t length) {
        static const struct {
                const char *kind;
                const ProtobufBodyField *fields;
        } messages[] = {
                { "DeleteOptions", delete_options_fields },
                { "SelfSubjectAccessReview", access_review_fields },
        };
        const unsigned char *bytes = (const unsigned char *) data;
        ProtobufBytes message = { bytes, bytes };
        cleanup_json json_t *type = NULL;

        if (!is_protobuf_body(data, length) ||
            read_unknown((ProtobufBytes){ bytes + sizeof(magic), bytes + length }, &type,
                         &message) < 0)
                return NULL;
        for (size_t i = 0; i < N_ELEMENTS(messages); i++)
                if (streq(messages[i].kind, strna(json_text(type, "kind"))))
                        return parse_protobuf_message(message, messages[i].fields);
        return json_object();
}

json_t *protobuf_body_metadata(const char *data, size_t length) {
        const unsigned char *bytes = (const unsigned char *) data;
        ProtobufBytes message = { bytes, bytes };
        cleanup_json json_t *type = NULL;

        if (!is_protobuf_body(data, length) ||
            read_unknown((ProtobufBytes){ bytes + sizeof(magic), bytes + length }, &type,
                         &message) < 0)
                return NULL;
        return parse_protobuf_message(message, object_fields);
}
