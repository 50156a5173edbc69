/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/node-api/wire/protobuf-body.h"

#include "common/cleanup.h"
#include "common/json-text.h"

#include <stdint.h>

static const char magic[] = { 'k', '8', 's', '\0' };

bool is_protobuf_body(const char *data, size_t length) {
        return length >= sizeof(magic) && memcmp(data, magic, sizeof(magic)) == 0;
}

/* ---- messages ---- */

typedef enum ProtobufBodyType {
        PROTOBUF_STRING,
        PROTOBUF_STRINGS, /* repeated */
        PROTOBUF_INTEGER,
        PROTOBUF_MESSAGE,
} ProtobufBodyType;

typedef struct ProtobufBodyField {
        unsigned number;
        const char *name; /* NULL: the end */
        ProtobufBodyType type;
        const struct ProtobufBodyField *fields; /* of a message */
} ProtobufBodyField;

static const ProtobufBodyField preconditions_fields[] = { { 1, "uid", PROTOBUF_STRING, NULL },
                                                          { 0 } };

static const ProtobufBodyField delete_options_fields[] = {
        { 1, "gracePeriodSeconds", PROTOBUF_INTEGER, NULL },
        { 2, "preconditions", PROTOBUF_MESSAGE, preconditions_fields },
        { 5, "dryRun", PROTOBUF_STRINGS, NULL },
        { 0 },
};

static const ProtobufBodyField resource_attributes_fields[] = {
        { 1, "namespace", PROTOBUF_STRING, NULL }, { 2, "verb", PROTOBUF_STRING, NULL },
        { 3, "group", PROTOBUF_STRING, NULL },     { 4, "version", PROTOBUF_STRING, NULL },
        { 5, "resource", PROTOBUF_STRING, NULL },  { 6, "subresource", PROTOBUF_STRING, NULL },
        { 7, "name", PROTOBUF_STRING, NULL },      { 0 },
};

static const ProtobufBodyField non_resource_attributes_fields[] = {
        { 1, "path", PROTOBUF_STRING, NULL },
        { 2, "verb", PROTOBUF_STRING, NULL },
        { 0 },
};

static const ProtobufBodyField access_spec_fields[] = {
        { 1, "resourceAttributes", PROTOBUF_MESSAGE, resource_attributes_fields },
        { 2, "nonResourceAttributes", PROTOBUF_MESSAGE, non_resource_attributes_fields },
        { 0 },
};

static const ProtobufBodyField access_review_fields[] = {
        { 2, "spec", PROTOBUF_MESSAGE, access_spec_fields },
        { 0 },
};

/* Objects that are stored have their metadata first. */
static const ProtobufBodyField object_meta_fields[] = {
        { 1, "name", PROTOBUF_STRING, NULL },
        { 3, "namespace", PROTOBUF_STRING, NULL },
        { 0 },
};

static const ProtobufBodyField object_fields[] = {
        { 1, "metadata", PROTOBUF_MESSAGE, object_meta_fields },
        { 0 },
};

static const ProtobufBodyField type_meta_fields[] = {
        { 1, "apiVersion", PROTOBUF_STRING, NULL },
        { 2, "kind", PROTOBUF_STRING, NULL },
        { 0 },
};

/* ---- the wire ---- */

typedef struct ProtobufBodyReader {
        const unsigned char *at, *end;
} ProtobufBodyReader;

enum {
        WIRE_VARINT = 0,
        WIRE_FIXED64 = 1,
        WIRE_BYTES = 2,
        WIRE_FIXED32 = 5,
};

typedef struct ProtobufValue {
        unsigned number, wire;
        uint64_t integer;
        ProtobufBodyReader bytes;
} ProtobufValue;

static int read_varint(ProtobufBodyReader *reader, uint64_t *ret) {
        uint64_t value = 0;

        for (unsigned shift = 0; shift < 64; shift += 7) {
                if (reader->at == reader->end)
                        return -EBADMSG;
                value |= (uint64_t) (*reader->at & 0x7f) << shift;
                if (!(*reader->at++ & 0x80)) {
                        *ret = value;
                        return 0;
                }
        }
        return -EBADMSG;
}

static int take_protobuf_bytes(ProtobufBodyReader *reader, uint64_t length,
                               ProtobufBodyReader *ret) {
        if (length > (size_t) (reader->end - reader->at))
                return -EBADMSG;
        *ret = (ProtobufBodyReader){ reader->at, reader->at + length };
        reader->at += length;
        return 0;
}

static int read_protobuf_value(ProtobufBodyReader *reader, ProtobufValue *ret) {
        uint64_t key, length;

        if (read_varint(reader, &key) < 0 || key >> 3 > UINT32_MAX)
                return -EBADMSG;
        ret->number = (unsigned) (key >> 3);
        ret->wire = key & 7;
        switch (ret->wire) {
        case WIRE_VARINT:
                return read_varint(reader, &ret->integer);
        case WIRE_FIXED64:
                return take_protobuf_bytes(reader, 8, &ret->bytes);
        case WIRE_FIXED32:
                return take_protobuf_bytes(reader, 4, &ret->bytes);
        case WIRE_BYTES:
                return read_varint(reader, &length) < 0
                               ? -EBADMSG
                               : take_protobuf_bytes(reader, length, &ret->bytes);
        default:
                return -EBADMSG;
        }
}

/* ---- to JSON ---- */

static json_t *protobuf_string(const ProtobufBodyReader *bytes) {
        return json_stringn((const char *) bytes->at, (size_t) (bytes->end - bytes->at));
}

static const ProtobufBodyField *find_protobuf_body_field(const ProtobufBodyField *fields,
                                                         unsigned number) {
        for (; fields->name; fields++)
                if (fields->number == number)
                        return fields;
        return NULL;
}

static int append_protobuf_string(json_t *object, const char *name,
                                  const ProtobufBodyReader *bytes) {
        json_t *list = json_object_get(object, name);

        if (!list) {
                list = json_array();
                if (json_object_set_new(object, name, list) < 0)
                        return -ENOMEM;
        }
        return json_array_append_new(list, protobuf_string(bytes)) < 0 ? -EBADMSG : 0;
}

static json_t *parse_protobuf_message(ProtobufBodyReader reader, const ProtobufBodyField *fields);

static int set_protobuf_field(json_t *object, const ProtobufBodyField *field,
                              const ProtobufValue *value) {
        json_t *json = NULL;

        if (value->wire != (field->type == PROTOBUF_INTEGER ? WIRE_VARINT : WIRE_BYTES))
                return -EBADMSG;
        switch (field->type) {
        case PROTOBUF_STRINGS:
                return append_protobuf_string(object, field->name, &value->bytes);
        case PROTOBUF_STRING:
                json = protobuf_string(&value->bytes);
                break;
        case PROTOBUF_INTEGER:
                json = json_integer((json_int_t) value->integer);
                break;
        case PROTOBUF_MESSAGE:
                json = parse_protobuf_message(value->bytes, field->fields);
                break;
        }
        return json_object_set_new(object, field->name, json) < 0 ? -EBADMSG : 0;
}

/* The depth is that of the tables. */
static json_t *parse_protobuf_message(ProtobufBodyReader reader, const ProtobufBodyField *fields) {
        cleanup_json json_t *object = json_object();

        while (object && reader.at < reader.end) {
                ProtobufValue value;
                const ProtobufBodyField *field;

                if (read_protobuf_value(&reader, &value) < 0)
                        return NULL;
                field = find_protobuf_body_field(fields, value.number);
                if (field && set_protobuf_field(object, field, &value) < 0)
                        return NULL;
        }
        return json_incref(object);
}

/* The type and the message within runtime.Unknown. */
static int read_unknown(ProtobufBodyReader reader, json_t **ret_type,
                        ProtobufBodyReader *ret_message) {
        while (reader.at < reader.end) {
                ProtobufValue value;

                if (read_protobuf_value(&reader, &value) < 0)
                        return -EBADMSG;
                if (value.wire == WIRE_BYTES && value.number == 1) {
                        json_decref(*ret_type);
                        *ret_type = parse_protobuf_message(value.bytes, type_meta_fields);
                }
                if (value.wire == WIRE_BYTES && value.number == 2)
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
        ProtobufBodyReader message = { bytes, bytes };
        cleanup_json json_t *type = NULL;

        if (!is_protobuf_body(data, length) ||
            read_unknown((ProtobufBodyReader){ bytes + sizeof(magic), bytes + length }, &type,
                         &message) < 0)
                return NULL;
        for (size_t i = 0; i < N_ELEMENTS(messages); i++)
                if (streq(messages[i].kind, strna(json_text(type, "kind"))))
                        return parse_protobuf_message(message, messages[i].fields);
        return json_object();
}

json_t *protobuf_body_metadata(const char *data, size_t length) {
        const unsigned char *bytes = (const unsigned char *) data;
        ProtobufBodyReader message = { bytes, bytes };
        cleanup_json json_t *type = NULL;

        if (!is_protobuf_body(data, length) ||
            read_unknown((ProtobufBodyReader){ bytes + sizeof(magic), bytes + length }, &type,
                         &message) < 0)
                return NULL;
        return parse_protobuf_message(message, object_fields);
}
