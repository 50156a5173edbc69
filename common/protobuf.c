/* SPDX-License-Identifier: Apache-2.0 */
#include "common/protobuf.h"

#include "common/array.h"
#include "common/strv.h"
#include "common/utf8.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>

enum {
        FIELD_NUMBER_MAX = (1 << 29) - 1,
        VARINT_MAX = 10, /* bytes */
};

/* All lists have this layout. */
typedef struct ProtobufList {
        void *items;
        size_t n;
} ProtobufList;

static ProtobufList load_list(const void *at) {
        ProtobufList list;

        memcpy(&list, at, sizeof(list));
        return list;
}

static void *pointer_in(const void *at) {
        void *pointer;

        memcpy(&pointer, at, sizeof(pointer));
        return pointer;
}

static void store_pointer(void *at, void *pointer) {
        memcpy(at, &pointer, sizeof(pointer));
}

/* ---- freeing ---- */

static void messages_done(const ProtobufRow *field, const void *at) {
        ProtobufList list = load_list(at);

        for (size_t i = 0; i < list.n; i++)
                protobuf_done(field->message, (char *) list.items + i * field->message->size);
        free(list.items);
}

/* NOLINTNEXTLINE(misc-no-recursion): as deep as the tables */
void protobuf_done(const ProtobufMessage *message, void *object) {
        for (size_t i = 0; i < message->n_fields; i++) {
                const ProtobufRow *field = &message->fields[i];
                void *at = (char *) object + field->offset;

                switch (field->type) {
                case PROTOBUF_TEXT:
                        free(pointer_in(at));
                        break;
                case PROTOBUF_TEXTS:
                        strv_free((char **) pointer_in(at));
                        break;
                case PROTOBUF_BYTES:
                        buffer_done(at);
                        break;
                case PROTOBUF_NUMBERS:
                        free(load_list(at).items);
                        break;
                case PROTOBUF_MESSAGE:
                        protobuf_done(field->message, at);
                        break;
                case PROTOBUF_MESSAGES:
                        messages_done(field, at);
                        break;
                case PROTOBUF_FLAG:
                case PROTOBUF_NUMBER:
                        break;
                }
        }
        memset(object, 0, message->size);
}

/* ---- the wire ---- */

static int refuse_bytes(Error *reterr, const char *what) {
        return error_setf(reterr, EBADMSG, "the message is not valid: %s", what);
}

static int take_varint(ProtobufBytes *reader, uint64_t *ret, Error *reterr) {
        uint64_t value = 0;

        for (unsigned i = 0; i < VARINT_MAX; i++) {
                unsigned char byte;

                if (reader->at == reader->end)
                        return refuse_bytes(reterr, "a number is cut off");
                byte = *reader->at++;
                value |= (uint64_t) (byte & 0x7f) << (7 * i);
                if (!(byte & 0x80)) {
                        *ret = value;
                        return 0;
                }
        }
        return refuse_bytes(reterr, "a number is too long");
}

static int take_wire_bytes(ProtobufBytes *reader, uint64_t n, ProtobufBytes *ret, Error *reterr) {
        if (n > (size_t) (reader->end - reader->at))
                return refuse_bytes(reterr, "a field is longer than the message");
        *ret = (ProtobufBytes){ reader->at, reader->at + n };
        reader->at += n;
        return 0;
}

int protobuf_read_field(ProtobufBytes *reader, ProtobufWireField *ret, Error *reterr) {
        uint64_t key, length;
        int r = take_varint(reader, &key, reterr);

        if (r < 0)
                return r;
        if (key >> 3 == 0 || key >> 3 > FIELD_NUMBER_MAX)
                return refuse_bytes(reterr, "a field has no valid number");
        *ret = (ProtobufWireField){ .number = (unsigned) (key >> 3), .wire = key & 7 };
        switch (ret->wire) {
        case PROTOBUF_WIRE_NUMBER:
                return take_varint(reader, &ret->value, reterr);
        case PROTOBUF_WIRE_BYTES:
                r = take_varint(reader, &length, reterr);
                return r < 0 ? r : take_wire_bytes(reader, length, &ret->bytes, reterr);
        case PROTOBUF_WIRE_FIXED64:
                return take_wire_bytes(reader, 8, &ret->bytes, reterr);
        case PROTOBUF_WIRE_FIXED32:
                return take_wire_bytes(reader, 4, &ret->bytes, reterr);
        }
        return refuse_bytes(reterr, "a field has an unknown type");
}

/* ---- decoding ---- */

/* The limit for decoding a whole message. */
typedef struct ProtobufState {
        size_t n_items;
        const void *texts; /* the array in the current message to which an item was appended last,
                            */
        size_t n_texts;    /* and its length, so that it is not counted for each item */
        Error *reterr;
} ProtobufState;

static int count_item(ProtobufState *state) {
        if (++state->n_items <= PROTOBUF_ITEMS_MAX)
                return 0;
        return error_setf(state->reterr, E2BIG, "the message has more than %d items",
                          PROTOBUF_ITEMS_MAX);
}

static int take_text(const ProtobufState *state, const ProtobufBytes *bytes, char **ret) {
        size_t length = (size_t) (bytes->end - bytes->at);

        if (!utf8_is_text((const char *) bytes->at, length))
                return refuse_bytes(state->reterr, "a text is not UTF-8");
        *ret = strndup((const char *) bytes->at, length);
        return *ret ? 0 : -ENOMEM;
}

static int decode_text(const ProtobufState *state, const ProtobufBytes *bytes, void *at) {
        char *text = NULL;
        int r = take_text(state, bytes, &text);

        if (r < 0)
                return r;
        free(pointer_in(at));
        if (text[0] == '\0') {
                free(text);
                text = NULL;
        }
        store_pointer(at, text);
        return 0;
}

/* Grows the array itself, because strv_append() would walk it for each item. */
static int decode_texts(ProtobufState *state, const ProtobufBytes *bytes, void *at) {
        char **texts = pointer_in(at), *text = NULL;
        size_t n = state->texts == at ? state->n_texts : strv_length(texts);
        int r = count_item(state);

        if (r >= 0)
                r = take_text(state, bytes, &text);
        if (r < 0)
                return r;
        if (!ARRAY_RESERVE(texts, n, 2)) {
                free(text);
                return -ENOMEM;
        }
        texts[n] = text;
        texts[n + 1] = NULL;
        store_pointer(at, texts);
        state->texts = at;
        state->n_texts = n + 1;
        return 0;
}

static int add_number(ProtobufState *state, void *at, uint64_t value) {
        ProtobufList list = load_list(at);
        int64_t *numbers = list.items;
        int r = count_item(state);

        if (r < 0)
                return r;
        if (!ARRAY_RESERVE(numbers, list.n, 1))
                return -ENOMEM;
        numbers[list.n++] = (int64_t) value;
        list.items = numbers;
        memcpy(at, &list, sizeof(list));
        return 0;
}

static int decode_packed(ProtobufState *state, ProtobufBytes *bytes, void *at) {
        int r = 0;

        while (bytes->at < bytes->end && r >= 0) {
                uint64_t value;

                r = take_varint(bytes, &value, state->reterr);
                if (r >= 0)
                        r = add_number(state, at, value);
        }
        return r;
}

static int decode_into(const ProtobufMessage *message, ProtobufState *state, ProtobufBytes reader,
                       void *object);

/* NOLINTNEXTLINE(misc-no-recursion): as deep as the tables */
static int decode_nested(const ProtobufMessage *message, ProtobufState *state,
                         const ProtobufBytes *bytes, void *object) {
        int r;

        state->texts = NULL;
        r = decode_into(message, state, *bytes, object);
        state->texts = NULL;
        return r;
}

/* NOLINTNEXTLINE(misc-no-recursion): as deep as the tables */
static int decode_item(const ProtobufRow *field, ProtobufState *state, const ProtobufBytes *bytes,
                       void *at) {
        ProtobufList list = load_list(at);
        size_t size = field->message->size;
        char *items;
        int r = count_item(state);

        if (r < 0)
                return r;
        items = array_reserve(list.items, list.n, 1, size);
        if (!items)
                return -ENOMEM;
        memset(items + list.n * size, 0, size);
        list = (ProtobufList){ items, list.n + 1 };
        memcpy(at, &list, sizeof(list));
        return decode_nested(field->message, state, bytes, items + (list.n - 1) * size);
}

/* NOLINTNEXTLINE(misc-no-recursion): as deep as the tables */
static int decode_bytes_field(const ProtobufRow *field, ProtobufState *state, ProtobufBytes *bytes,
                              void *at) {
        size_t length = (size_t) (bytes->end - bytes->at);

        switch (field->type) {
        case PROTOBUF_TEXT:
                return decode_text(state, bytes, at);
        case PROTOBUF_TEXTS:
                return decode_texts(state, bytes, at);
        case PROTOBUF_BYTES:
                buffer_done(at);
                return buffer_append(at, bytes->at, length, SIZE_MAX / 2);
        case PROTOBUF_NUMBERS:
                return decode_packed(state, bytes, at);
        case PROTOBUF_MESSAGE:
                return decode_nested(field->message, state, bytes, at);
        case PROTOBUF_MESSAGES:
                return decode_item(field, state, bytes, at);
        case PROTOBUF_FLAG:
        case PROTOBUF_NUMBER:
                break;
        }
        return refuse_bytes(state->reterr, "a field has another type");
}

static int decode_number_field(const ProtobufRow *field, ProtobufState *state, uint64_t value,
                               void *at) {
        if (field->type == PROTOBUF_NUMBERS)
                return add_number(state, at, value);
        if (field->type == PROTOBUF_FLAG)
                *(bool *) at = value != 0;
        else if (field->type == PROTOBUF_NUMBER)
                memcpy(at, &value, sizeof(value));
        else
                return refuse_bytes(state->reterr, "a field has another type");
        return 0;
}

static const ProtobufRow *find_protobuf_row(const ProtobufMessage *message, uint64_t number) {
        for (size_t i = 0; i < message->n_fields; i++)
                if (message->fields[i].number == number)
                        return &message->fields[i];
        return NULL;
}

/* NOLINTNEXTLINE(misc-no-recursion): as deep as the tables */
static int decode_into(const ProtobufMessage *message, ProtobufState *state, ProtobufBytes reader,
                       void *object) {
        while (reader.at < reader.end) {
                ProtobufWireField field;
                const ProtobufRow *row;
                void *at;
                int r = protobuf_read_field(&reader, &field, state->reterr);

                if (r < 0)
                        return r;
                row = find_protobuf_row(message, field.number);
                if (!row)
                        continue;
                at = (char *) object + row->offset;
                if (field.wire == PROTOBUF_WIRE_BYTES)
                        r = decode_bytes_field(row, state, &field.bytes, at);
                else if (field.wire == PROTOBUF_WIRE_NUMBER)
                        r = decode_number_field(row, state, field.value, at);
                else
                        r = refuse_bytes(state->reterr, "a field has another type");
                if (r < 0)
                        return r;
        }
        return 0;
}

int protobuf_decode(const ProtobufMessage *message, const void *data, size_t length, void *object,
                    Error *reterr) {
        ProtobufState state = { .reterr = reterr };
        const ProtobufBytes bytes = { data, (const unsigned char *) data + length };

        return length == 0 ? 0 : decode_into(message, &state, bytes, object);
}

/* ---- encoding ---- */

typedef struct ProtobufWriter {
        Buffer *buffer;
        size_t max;
} ProtobufWriter;

static int write_varint(const ProtobufWriter *writer, uint64_t value) {
        unsigned char bytes[VARINT_MAX];
        size_t n = 0;

        while (value >= 0x80) {
                bytes[n++] = (unsigned char) (value | 0x80);
                value >>= 7;
        }
        bytes[n++] = (unsigned char) value;
        return buffer_append(writer->buffer, bytes, n, writer->max);
}

static int write_key(const ProtobufWriter *writer, const ProtobufRow *field, unsigned wire) {
        return write_varint(writer, (uint64_t) field->number << 3 | wire);
}

static int write_field_bytes(const ProtobufWriter *writer, const ProtobufRow *field,
                             const void *data, size_t length) {
        int r = write_key(writer, field, PROTOBUF_WIRE_BYTES);

        if (r >= 0)
                r = write_varint(writer, length);
        if (r >= 0 && length > 0)
                r = buffer_append(writer->buffer, data, length, writer->max);
        return r;
}

static int write_number(const ProtobufWriter *writer, const ProtobufRow *field, uint64_t value) {
        int r = value > 0 ? write_key(writer, field, PROTOBUF_WIRE_NUMBER) : 0;

        return r >= 0 && value > 0 ? write_varint(writer, value) : r;
}

static int write_packed(const ProtobufWriter *writer, const ProtobufRow *field, const void *at) {
        ProtobufList list = load_list(at);
        Buffer packed = { 0 };
        const ProtobufWriter inner = { &packed, writer->max };
        int r = 0;

        for (size_t i = 0; i < list.n && r >= 0; i++)
                r = write_varint(&inner, (uint64_t) ((const int64_t *) list.items)[i]);
        if (r >= 0 && list.n > 0)
                r = write_field_bytes(writer, field, packed.data, packed.length);
        buffer_done(&packed);
        return r;
}

/* NOLINTNEXTLINE(misc-no-recursion): as deep as the tables */
static int write_message(const ProtobufWriter *writer, const ProtobufRow *field, const void *at,
                         bool is_item) {
        Buffer inner = { 0 };
        int r = protobuf_encode(field->message, at, &inner, writer->max);

        if (r >= 0 && (is_item || inner.length > 0))
                r = write_field_bytes(writer, field, inner.data, inner.length);
        buffer_done(&inner);
        return r;
}

/* NOLINTNEXTLINE(misc-no-recursion): as deep as the tables */
static int write_messages(const ProtobufWriter *writer, const ProtobufRow *field, const void *at) {
        ProtobufList list = load_list(at);
        int r = 0;

        for (size_t i = 0; i < list.n && r >= 0; i++)
                r = write_message(writer, field,
                                  (const char *) list.items + i * field->message->size, true);
        return r;
}

static int write_texts(const ProtobufWriter *writer, const ProtobufRow *field, char *const *texts) {
        int r = 0;

        for (size_t i = 0; texts && texts[i] && r >= 0; i++)
                r = write_field_bytes(writer, field, texts[i], strlen(texts[i]));
        return r;
}

/* NOLINTNEXTLINE(misc-no-recursion): as deep as the tables */
static int write_field(const ProtobufWriter *writer, const ProtobufRow *field, const void *at) {
        const char *text;
        uint64_t number;

        switch (field->type) {
        case PROTOBUF_TEXT:
                text = pointer_in(at);
                return text && text[0] ? write_field_bytes(writer, field, text, strlen(text)) : 0;
        case PROTOBUF_TEXTS:
                return write_texts(writer, field, pointer_in(at));
        case PROTOBUF_BYTES:
                return ((const Buffer *) at)->length == 0
                               ? 0
                               : write_field_bytes(writer, field, ((const Buffer *) at)->data,
                                                   ((const Buffer *) at)->length);
        case PROTOBUF_FLAG:
                return write_number(writer, field, *(const bool *) at);
        case PROTOBUF_NUMBER:
                memcpy(&number, at, sizeof(number));
                return write_number(writer, field, number);
        case PROTOBUF_NUMBERS:
                return write_packed(writer, field, at);
        case PROTOBUF_MESSAGE:
                return write_message(writer, field, at, false);
        case PROTOBUF_MESSAGES:
                return write_messages(writer, field, at);
        }
        return 0;
}

/* NOLINTNEXTLINE(misc-no-recursion): as deep as the tables */
int protobuf_encode(const ProtobufMessage *message, const void *object, Buffer *buffer,
                    size_t max) {
        const ProtobufWriter writer = { buffer, max };
        int r = 0;

        for (size_t i = 0; i < message->n_fields && r >= 0; i++)
                r = write_field(&writer, &message->fields[i],
                                (const char *) object + message->fields[i].offset);
        return r;
}
