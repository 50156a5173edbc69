/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* Table-driven Protocol Buffers: a message is a struct and a table of its fields, with which it is
 * decoded, encoded and freed. The tables are trees, so no input can make the decoder recurse
 * endlessly.
 *
 * Lists are a pointer and a count. A map of strings is a list of messages with two fields. */

#include "common/buffer.h"
#include "common/error.h"

#include <stdint.h>

typedef enum ProtobufRowType {
        PROTOBUF_TEXT,     /* char *, UTF-8 without NUL; NULL: absent or empty */
        PROTOBUF_TEXTS,    /* char **, NULL-terminated, or NULL */
        PROTOBUF_BYTES,    /* Buffer */
        PROTOBUF_FLAG,     /* bool */
        PROTOBUF_NUMBER,   /* int64_t: for int32 and int64 */
        PROTOBUF_NUMBERS,  /* list of int64_t, read packed or unpacked, written packed */
        PROTOBUF_MESSAGE,  /* an embedded struct; absent if nothing in it is set */
        PROTOBUF_MESSAGES, /* list of structs */
} ProtobufRowType;

typedef struct ProtobufMessage ProtobufMessage;

typedef struct ProtobufRow {
        unsigned number;
        ProtobufRowType type;
        size_t offset;
        const ProtobufMessage *message;
} ProtobufRow;

struct ProtobufMessage {
        size_t size; /* of the struct */
        const ProtobufRow *fields;
        size_t n_fields;
};

#define PROTOBUF_FIELD(no, kind, object, member, ...) \
        { .number = (no), .type = PROTOBUF_##kind, .offset = offsetof(object, member), __VA_ARGS__ }
#define PROTOBUF_TABLE(type, table) \
        { .size = sizeof(type), .fields = (table), .n_fields = N_ELEMENTS(table) }

/* Maximum number of items in a list, and in all lists of one message together. */
enum {
        PROTOBUF_ITEMS_MAX = 65536
};

/* Decodes into a zeroed struct. Unknown fields are skipped, and if a field occurs twice, the last
 * one is used. 0; -EBADMSG with a message; -E2BIG for too many items; -ENOMEM. The caller calls
 * protobuf_done() in all cases. */
int protobuf_decode(const ProtobufMessage *message, const void *data, size_t length, void *object,
                    Error *reterr);

/* Appends the encoded struct. 0, -EFBIG beyond 'max' bytes, or -ENOMEM. */
int protobuf_encode(const ProtobufMessage *message, const void *object, Buffer *buffer, size_t max);

/* Frees the contents of the struct, and zeroes it. */
void protobuf_done(const ProtobufMessage *message, void *object);

/* ---- the wire, for messages without a table ---- */

typedef struct ProtobufBytes {
        const unsigned char *at, *end; /* borrowed */
} ProtobufBytes;

typedef enum ProtobufWire {
        PROTOBUF_WIRE_NUMBER = 0,
        PROTOBUF_WIRE_FIXED64 = 1,
        PROTOBUF_WIRE_BYTES = 2,
        PROTOBUF_WIRE_FIXED32 = 5,
} ProtobufWire;

typedef struct ProtobufWireField {
        unsigned number;
        ProtobufWire wire;
        uint64_t value;      /* for PROTOBUF_WIRE_NUMBER; a negative number is in two's
                              * complement */
        ProtobufBytes bytes; /* for the others */
} ProtobufWireField;

/* Reads the next field, if there is at least one byte, and advances past it. 0; -EBADMSG with a
 * message. */
int protobuf_read_field(ProtobufBytes *reader, ProtobufWireField *ret, Error *reterr);
