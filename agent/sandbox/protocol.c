/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sandbox/protocol.h"

#include "common/cleanup.h"
#include "common/json-text.h"

#include <limits.h>

/* Tables describe both directions: each member's offset in the struct, and the message types that
 * have it. One reader and one writer walk them. */

typedef enum MessageFieldKind {
        KIND_STRING,   /* const char *; required when read */
        KIND_OPTIONAL, /* const char *; may be NULL */
        KIND_TEXT,     /* as KIND_OPTIONAL, for humans: invalid UTF-8 is replaced */
        KIND_UNSIGNED, /* unsigned */
        KIND_INTEGER,  /* int, pid_t */
        KIND_LARGE,    /* uint64_t; 63 bits are transferred */
        KIND_BOOLEAN,  /* bool */
        KIND_STRINGS,  /* StringList */
} MessageFieldKind;

typedef struct MessageField {
        const char *name;
        MessageFieldKind kind;
        size_t offset;
        unsigned types;
} MessageField;

typedef struct MessageSchema {
        const char *const *type_names;
        unsigned n_types;
        const MessageField *fields;
        size_t n_fields;
} MessageSchema;

enum {
        MESSAGE_LISTS_MAX = 4
};

/* Owns the strings and lists of a decoded message. */
typedef struct MessageStorage {
        json_t *root;
        const char **lists[MESSAGE_LISTS_MAX]; /* one for each member of type list */
        size_t n_lists;
} MessageStorage;

_Static_assert(sizeof(pid_t) == sizeof(int), "KIND_INTEGER serves both");

#define MESSAGE_TYPE_BIT(type) (1U << (type))

/* clang-format off */
static const char *const request_names[] = {
        [SHIM_REQUEST_HELLO]    = "hello",
        [SHIM_REQUEST_SETUP]    = "setup",
        [SHIM_REQUEST_RUN]      = "run",
        [SHIM_REQUEST_STOP]     = "stop",
        [SHIM_REQUEST_DELETE]   = "delete",
        [SHIM_REQUEST_TEARDOWN] = "teardown",
        [SHIM_REQUEST_EXEC]     = "exec",
        [SHIM_REQUEST_EXEC_IN]  = "exec-in",
        [SHIM_REQUEST_NOTE]     = "note",
        [SHIM_REQUEST_SESSION]  = "session",
        [SHIM_REQUEST_ATTACH]   = "attach",
        [SHIM_REQUEST_USAGE]    = "usage",
        [SHIM_REQUEST_DEVICES]  = "devices",
};

static const char *const event_names[] = {
        [SHIM_EVENT_HELLO]        = "hello",
        [SHIM_EVENT_SYNCED]       = "synced",
        [SHIM_EVENT_READY]        = "ready",
        [SHIM_EVENT_SETUP_FAILED] = "setup-failed",
        [SHIM_EVENT_STARTING]     = "starting",
        [SHIM_EVENT_STARTED]      = "started",
        [SHIM_EVENT_START_FAILED] = "start-failed",
        [SHIM_EVENT_EXITED]       = "exited",
        [SHIM_EVENT_DELETED]      = "deleted",
        [SHIM_EVENT_EXEC_DONE]    = "exec-done",
        [SHIM_EVENT_ERROR]        = "error",
        [SHIM_EVENT_USAGE]        = "usage",
};

enum {
        OF_ID = MESSAGE_TYPE_BIT(SHIM_REQUEST_RUN) | MESSAGE_TYPE_BIT(SHIM_REQUEST_STOP) | MESSAGE_TYPE_BIT(SHIM_REQUEST_DELETE) | MESSAGE_TYPE_BIT(SHIM_REQUEST_EXEC) |
                MESSAGE_TYPE_BIT(SHIM_REQUEST_EXEC_IN) | MESSAGE_TYPE_BIT(SHIM_REQUEST_NOTE) | MESSAGE_TYPE_BIT(SHIM_REQUEST_SESSION) |
                MESSAGE_TYPE_BIT(SHIM_REQUEST_ATTACH) | MESSAGE_TYPE_BIT(SHIM_REQUEST_DEVICES),
        OF_CLIENT = MESSAGE_TYPE_BIT(SHIM_REQUEST_SESSION) | MESSAGE_TYPE_BIT(SHIM_REQUEST_ATTACH),
        OF_PROGRAM = MESSAGE_TYPE_BIT(SHIM_REQUEST_EXEC) | MESSAGE_TYPE_BIT(SHIM_REQUEST_EXEC_IN),
        OF_ENDED = MESSAGE_TYPE_BIT(SHIM_EVENT_EXITED) | MESSAGE_TYPE_BIT(SHIM_EVENT_START_FAILED),
        OF_ATTEMPT = OF_ENDED | MESSAGE_TYPE_BIT(SHIM_EVENT_STARTING) | MESSAGE_TYPE_BIT(SHIM_EVENT_STARTED) | MESSAGE_TYPE_BIT(SHIM_EVENT_DELETED),
        OF_PROCESS = MESSAGE_TYPE_BIT(SHIM_EVENT_STARTED) | MESSAGE_TYPE_BIT(SHIM_EVENT_EXITED),
        OF_STATUS = MESSAGE_TYPE_BIT(SHIM_EVENT_EXITED) | MESSAGE_TYPE_BIT(SHIM_EVENT_EXEC_DONE),
};

static const MessageField request_fields[] = {
        { "version",       KIND_UNSIGNED, offsetof(ShimRequest, version),       MESSAGE_TYPE_BIT(SHIM_REQUEST_HELLO)  },
        { "fstab",         KIND_STRING,   offsetof(ShimRequest, fstab),         MESSAGE_TYPE_BIT(SHIM_REQUEST_SETUP)  },
        { "hostname",      KIND_OPTIONAL, offsetof(ShimRequest, hostname),      MESSAGE_TYPE_BIT(SHIM_REQUEST_SETUP)  },
        { "log_max_size",  KIND_LARGE,    offsetof(ShimRequest, log_max_size),  MESSAGE_TYPE_BIT(SHIM_REQUEST_SETUP)  },
        { "log_max_files", KIND_UNSIGNED, offsetof(ShimRequest, log_max_files), MESSAGE_TYPE_BIT(SHIM_REQUEST_SETUP)  },
        { "id",            KIND_STRING,   offsetof(ShimRequest, id),            OF_ID               },
        { "name",          KIND_STRING,   offsetof(ShimRequest, name),          MESSAGE_TYPE_BIT(SHIM_REQUEST_RUN)    },
        { "attempt",       KIND_UNSIGNED, offsetof(ShimRequest, attempt),       MESSAGE_TYPE_BIT(SHIM_REQUEST_RUN)    },
        { "bundle",        KIND_STRING,   offsetof(ShimRequest, bundle),        MESSAGE_TYPE_BIT(SHIM_REQUEST_RUN)    },
        { "log",           KIND_STRING,   offsetof(ShimRequest, log),           MESSAGE_TYPE_BIT(SHIM_REQUEST_RUN)    },
        { "journal_fields", KIND_STRINGS, offsetof(ShimRequest, journal_fields), MESSAGE_TYPE_BIT(SHIM_REQUEST_RUN)   },
        { "events_file",   KIND_OPTIONAL, offsetof(ShimRequest, events_file),   MESSAGE_TYPE_BIT(SHIM_REQUEST_RUN)    },
        { "note",          KIND_OPTIONAL, offsetof(ShimRequest, note),          MESSAGE_TYPE_BIT(SHIM_REQUEST_RUN) | MESSAGE_TYPE_BIT(SHIM_REQUEST_NOTE) },
        { "has_input",     KIND_BOOLEAN,  offsetof(ShimRequest, has_input),     MESSAGE_TYPE_BIT(SHIM_REQUEST_RUN) | OF_CLIENT },
        { "has_terminal",  KIND_BOOLEAN,  offsetof(ShimRequest, has_terminal),  MESSAGE_TYPE_BIT(SHIM_REQUEST_RUN) | OF_CLIENT },
        { "keeps_early",   KIND_BOOLEAN,  offsetof(ShimRequest, keeps_early),   MESSAGE_TYPE_BIT(SHIM_REQUEST_RUN)    },
        { "is_held",       KIND_BOOLEAN,  offsetof(ShimRequest, is_held),       MESSAGE_TYPE_BIT(SHIM_REQUEST_SESSION) },
        { "is_input_once", KIND_BOOLEAN,  offsetof(ShimRequest, is_input_once), MESSAGE_TYPE_BIT(SHIM_REQUEST_ATTACH) },
        { "target",        KIND_OPTIONAL, offsetof(ShimRequest, target),        MESSAGE_TYPE_BIT(SHIM_REQUEST_RUN)    },
        { "signal",        KIND_INTEGER,  offsetof(ShimRequest, signal),        MESSAGE_TYPE_BIT(SHIM_REQUEST_STOP)   },
        { "delay_usec",    KIND_LARGE,    offsetof(ShimRequest, delay_usec),    MESSAGE_TYPE_BIT(SHIM_REQUEST_STOP)   },
        { "grace_usec",    KIND_LARGE,    offsetof(ShimRequest, grace_usec),    MESSAGE_TYPE_BIT(SHIM_REQUEST_STOP)   },
        { "directories",   KIND_STRINGS,  offsetof(ShimRequest, directories),   MESSAGE_TYPE_BIT(SHIM_REQUEST_DELETE) },
        { "devices",       KIND_STRINGS,  offsetof(ShimRequest, devices),       MESSAGE_TYPE_BIT(SHIM_REQUEST_DEVICES) },
        { "container",     KIND_STRING,   offsetof(ShimRequest, container),     MESSAGE_TYPE_BIT(SHIM_REQUEST_EXEC_IN) },
        { "arguments",     KIND_STRINGS,  offsetof(ShimRequest, arguments),     OF_PROGRAM | MESSAGE_TYPE_BIT(SHIM_REQUEST_SESSION) },
        { "environment",   KIND_STRINGS,  offsetof(ShimRequest, environment),   MESSAGE_TYPE_BIT(SHIM_REQUEST_EXEC)   },
        { "input",         KIND_OPTIONAL, offsetof(ShimRequest, input),         MESSAGE_TYPE_BIT(SHIM_REQUEST_EXEC)   },
        { "in_host",       KIND_BOOLEAN,  offsetof(ShimRequest, in_host),       MESSAGE_TYPE_BIT(SHIM_REQUEST_EXEC)   },
        { "timeout_usec",  KIND_LARGE,    offsetof(ShimRequest, timeout_usec),  OF_PROGRAM          },
        { "interface",     KIND_OPTIONAL, offsetof(ShimRequest, interface),     MESSAGE_TYPE_BIT(SHIM_REQUEST_EXEC)   },
        { "address",       KIND_OPTIONAL, offsetof(ShimRequest, address),       MESSAGE_TYPE_BIT(SHIM_REQUEST_EXEC)   },
        { "keeps_router_advertisements", KIND_BOOLEAN, offsetof(ShimRequest, keeps_router_advertisements), MESSAGE_TYPE_BIT(SHIM_REQUEST_EXEC) },
        { "has_output",    KIND_BOOLEAN,  offsetof(ShimRequest, has_output),    OF_CLIENT },
        { "has_error",     KIND_BOOLEAN,  offsetof(ShimRequest, has_error),     OF_CLIENT },
};

static const MessageField event_fields[] = {
        { "version",        KIND_UNSIGNED, offsetof(ShimEvent, version),        MESSAGE_TYPE_BIT(SHIM_EVENT_HELLO) },
        { "pid",            KIND_INTEGER,  offsetof(ShimEvent, pid),            MESSAGE_TYPE_BIT(SHIM_EVENT_HELLO) | MESSAGE_TYPE_BIT(SHIM_EVENT_STARTED) },
        { "ready",          KIND_BOOLEAN,  offsetof(ShimEvent, ready),          MESSAGE_TYPE_BIT(SHIM_EVENT_SYNCED) },
        { "id",             KIND_OPTIONAL, offsetof(ShimEvent, id),
          OF_ATTEMPT | MESSAGE_TYPE_BIT(SHIM_EVENT_EXEC_DONE) | MESSAGE_TYPE_BIT(SHIM_EVENT_ERROR) | MESSAGE_TYPE_BIT(SHIM_EVENT_USAGE) },
        { "name",           KIND_OPTIONAL, offsetof(ShimEvent, name),           OF_ATTEMPT },
        { "attempt",        KIND_UNSIGNED, offsetof(ShimEvent, attempt),        OF_ATTEMPT },
        { "note",           KIND_OPTIONAL, offsetof(ShimEvent, note),           OF_ATTEMPT },
        { "replayed",       KIND_BOOLEAN,  offsetof(ShimEvent, replayed),       OF_ATTEMPT },
        { "deleted",        KIND_BOOLEAN,  offsetof(ShimEvent, deleted),        OF_ENDED },
        { "started_at",     KIND_LARGE,    offsetof(ShimEvent, started_at),     OF_PROCESS },
        { "finished_at",    KIND_LARGE,    offsetof(ShimEvent, finished_at),    MESSAGE_TYPE_BIT(SHIM_EVENT_EXITED) },
        { "exit_code",      KIND_INTEGER,  offsetof(ShimEvent, exit_code),      OF_STATUS },
        { "signal",         KIND_INTEGER,  offsetof(ShimEvent, signal),         OF_STATUS },
        { "timed_out",      KIND_BOOLEAN,  offsetof(ShimEvent, timed_out),      MESSAGE_TYPE_BIT(SHIM_EVENT_EXEC_DONE) },
        { "output",         KIND_TEXT,     offsetof(ShimEvent, output),         MESSAGE_TYPE_BIT(SHIM_EVENT_EXEC_DONE) },
        { "error",          KIND_TEXT,     offsetof(ShimEvent, error),          MESSAGE_TYPE_BIT(SHIM_EVENT_EXEC_DONE) },
        { "n_descriptors",  KIND_LARGE,    offsetof(ShimEvent, n_descriptors),  MESSAGE_TYPE_BIT(SHIM_EVENT_USAGE) },
        { "n_sockets",      KIND_LARGE,    offsetof(ShimEvent, n_sockets),      MESSAGE_TYPE_BIT(SHIM_EVENT_USAGE) },
        { "open_files_max", KIND_LARGE,    offsetof(ShimEvent, open_files_max), MESSAGE_TYPE_BIT(SHIM_EVENT_USAGE) },
        { "oom_killed",     KIND_BOOLEAN,  offsetof(ShimEvent, oom_killed),     MESSAGE_TYPE_BIT(SHIM_EVENT_EXITED) },
        { "runtime_failed", KIND_BOOLEAN,  offsetof(ShimEvent, runtime_failed), MESSAGE_TYPE_BIT(SHIM_EVENT_START_FAILED) },
        { "message",        KIND_TEXT,     offsetof(ShimEvent, message),
          OF_ATTEMPT | MESSAGE_TYPE_BIT(SHIM_EVENT_EXEC_DONE) | MESSAGE_TYPE_BIT(SHIM_EVENT_ERROR) | MESSAGE_TYPE_BIT(SHIM_EVENT_SETUP_FAILED) },
};

static const MessageSchema request_schema = {
        request_names, N_SHIM_REQUEST_TYPES, request_fields, N_ELEMENTS(request_fields),
};

static const MessageSchema event_schema = {
        event_names, N_SHIM_EVENT_TYPES, event_fields, N_ELEMENTS(event_fields),
};
/* clang-format on */

_Static_assert(N_ELEMENTS(request_names) == N_SHIM_REQUEST_TYPES, "every request has a name");
_Static_assert(N_ELEMENTS(event_names) == N_SHIM_EVENT_TYPES, "every event has a name");

/* The address of the member in the message. */
static const void *message_field_at(const void *message, const MessageField *field) {
        return (const char *) message + field->offset;
}

static json_t *printable_text_to_json(const char *text) {
        cleanup_free char *copy = NULL;
        json_t *value = json_string(text);

        if (value)
                return value;
        copy = strndup(text, SHIM_PROTOCOL_OUTPUT_MAX);
        if (!copy)
                return NULL;
        for (char *p = copy; *p; p++)
                if ((unsigned char) *p >= 0x80)
                        *p = '?';
        return json_string(copy);
}

static json_t *json_from_string_list(const StringList *list) {
        json_t *array = json_array();

        for (size_t i = 0; array && i < list->n; i++)
                if (json_array_append_new(array, json_string(list->items[i])) < 0) {
                        json_decref(array);
                        return NULL;
                }
        return array;
}

/* NULL if a string cannot be written (or out of memory); '*ret_absent' if there is nothing to
 * write. */
static json_t *message_field_to_json(const void *value, MessageFieldKind kind, bool *ret_absent) {
        const char *string;

        *ret_absent = false;
        switch (kind) {
        case KIND_STRING:
        case KIND_OPTIONAL:
        case KIND_TEXT:
                string = *(const char *const *) value;
                *ret_absent = !string;
                if (!string)
                        return NULL;
                return kind == KIND_TEXT ? printable_text_to_json(string) : json_string(string);
        case KIND_UNSIGNED:
                return json_integer(*(const unsigned *) value);
        case KIND_INTEGER:
                return json_integer(*(const int *) value);
        case KIND_LARGE:
                return json_integer((json_int_t) MIN(*(const uint64_t *) value, INT64_MAX));
        case KIND_BOOLEAN:
                return json_boolean(*(const bool *) value);
        case KIND_STRINGS:
                return json_from_string_list(value);
        }
        return NULL;
}

static int write_message_fields(json_t *root, const MessageSchema *schema, unsigned type,
                                const void *message) {
        unsigned failures = json_failed_allocations();

        for (size_t i = 0; i < schema->n_fields; i++) {
                const MessageField *field = &schema->fields[i];
                bool absent;
                json_t *value;

                if (!(field->types & MESSAGE_TYPE_BIT(type)))
                        continue;
                value = message_field_to_json(message_field_at(message, field), field->kind,
                                              &absent);
                if (absent)
                        continue;
                if (json_failed_allocations() != failures) {
                        json_decref(value);
                        return -ENOMEM;
                }
                if (!value)
                        return -EILSEQ;
                if (json_object_set_new(root, field->name, value) < 0)
                        return -ENOMEM;
        }
        return 0;
}

static int encode_message(const MessageSchema *schema, unsigned type, const void *message,
                          char **ret_packet, size_t *ret_length) {
        unsigned failures = json_failed_allocations();
        cleanup_json json_t *root = json_pack("{s:s}", "type", schema->type_names[type]);
        cleanup_free char *packet = NULL;
        size_t length;
        int r;

        if (!root)
                return -ENOMEM;
        r = write_message_fields(root, schema, type, message);
        if (r < 0)
                return r;
        packet = json_failed_allocations() == failures ? json_to_text(root, JSON_COMPACT) : NULL;
        if (!packet)
                return -ENOMEM;
        length = strlen(packet);
        if (length > SHIM_PROTOCOL_PACKET_MAX)
                return -EMSGSIZE;
        *ret_packet = TAKE_PTR(packet);
        *ret_length = length;
        return 0;
}

int shim_request_encode(const ShimRequest *request, char **ret_packet, size_t *ret_length) {
        return encode_message(&request_schema, request->type, request, ret_packet, ret_length);
}

int shim_event_encode(const ShimEvent *event, char **ret_packet, size_t *ret_length) {
        return encode_message(&event_schema, event->type, event, ret_packet, ret_length);
}

static int string_list_from_json(json_t *array, MessageStorage *storage, StringList *ret,
                                 Error *reterr) {
        const char **strings;
        size_t i;
        json_t *item;

        if (!json_is_array(array))
                return error_setf(reterr, EBADMSG, "is not a list");
        if (storage->n_lists == MESSAGE_LISTS_MAX)
                return error_setf(reterr, EBADMSG, "exceeds the number of lists in a message");
        strings = calloc(json_array_size(array) + 1, sizeof(char *));
        if (!strings)
                return -ENOMEM;
        storage->lists[storage->n_lists++] = strings;
        json_array_foreach(array, i, item) {
                strings[i] = json_string_value(item);
                if (!strings[i])
                        return error_setf(reterr, EBADMSG, "has an item that is not a string");
        }
        *ret = (StringList){ strings, json_array_size(array) };
        return 0;
}

static int message_integer_from_json(json_t *value, json_int_t min, json_int_t max, json_int_t *ret,
                                     Error *reterr) {
        json_int_t n = json_integer_value(value);

        if (!json_is_integer(value))
                return error_setf(reterr, EBADMSG, "is not an integer");
        if (n < min || n > max)
                return error_setf(reterr, EBADMSG, "is out of range");
        *ret = n;
        return 0;
}

static int message_string_from_json(json_t *value, const char **ret, Error *reterr) {
        if (!json_is_string(value))
                return error_setf(reterr, EBADMSG, "is not a string");
        *ret = json_string_value(value);
        return 0;
}

static int message_field_from_json(json_t *value, MessageFieldKind kind, MessageStorage *storage,
                                   void *ret, Error *reterr) {
        json_int_t n = 0;
        int r;

        switch (kind) {
        case KIND_STRING:
        case KIND_OPTIONAL:
        case KIND_TEXT:
                return message_string_from_json(value, ret, reterr);
        case KIND_UNSIGNED:
                r = message_integer_from_json(value, 0, UINT_MAX, &n, reterr);
                if (r < 0)
                        return r;
                *(unsigned *) ret = (unsigned) n;
                return 0;
        case KIND_INTEGER:
                r = message_integer_from_json(value, INT_MIN, INT_MAX, &n, reterr);
                if (r < 0)
                        return r;
                *(int *) ret = (int) n;
                return 0;
        case KIND_LARGE:
                r = message_integer_from_json(value, 0, INT64_MAX, &n, reterr);
                if (r < 0)
                        return r;
                *(uint64_t *) ret = (uint64_t) n;
                return 0;
        case KIND_BOOLEAN:
                if (!json_is_boolean(value))
                        return error_setf(reterr, EBADMSG, "is not a boolean");
                *(bool *) ret = json_boolean_value(value);
                return 0;
        case KIND_STRINGS:
                return string_list_from_json(value, storage, ret, reterr);
        }
        return -EBADMSG;
}

static int read_message_fields(const MessageSchema *schema, unsigned type, MessageStorage *storage,
                               void *message, Error *reterr) {
        for (size_t i = 0; i < schema->n_fields; i++) {
                const MessageField *field = &schema->fields[i];
                json_t *value;
                int r;

                if (!(field->types & MESSAGE_TYPE_BIT(type)))
                        continue;
                value = json_object_get(storage->root, field->name);
                if (!value && field->kind != KIND_STRING)
                        continue;
                if (!value)
                        return error_setf(reterr, EBADMSG, "%s: '%s' is missing",
                                          schema->type_names[type], field->name);
                r = message_field_from_json(value, field->kind, storage,
                                            (char *) message + field->offset, reterr);
                if (r < 0)
                        return error_prefixf(reterr, r, "%s: '%s'", schema->type_names[type],
                                             field->name);
        }
        return 0;
}

static int find_message_type(const MessageSchema *schema, const json_t *root, unsigned *ret,
                             Error *reterr) {
        const char *name = json_text(root, "type");

        if (!name)
                return error_setf(reterr, EBADMSG, "not a message: the type is missing");
        for (unsigned i = 0; i < schema->n_types; i++)
                if (streq(schema->type_names[i], name)) {
                        *ret = i;
                        return 0;
                }
        return error_setf(reterr, ENOTSUP, "unknown message '%.64s'", name);
}

static void message_storage_free(MessageStorage *storage) {
        if (!storage)
                return;
        json_decref(storage->root);
        for (size_t i = 0; i < storage->n_lists; i++)
                free(storage->lists[i]);
        free(storage);
}

static int decode_message(const MessageSchema *schema, const char *packet, size_t length,
                          unsigned *ret_type, void *message, void **ret_storage, Error *reterr) {
        json_error_t problem;
        MessageStorage *storage;
        int r;

        *ret_type = 0;
        if (length > SHIM_PROTOCOL_PACKET_MAX)
                return error_setf(reterr, EBADMSG, "not a message: it is too long");
        storage = calloc(1, sizeof(*storage));
        if (!storage)
                return -ENOMEM;
        r = json_parse_text(packet, length, JSON_REJECT_DUPLICATES, &storage->root, &problem);
        if (r == -EBADMSG)
                r = error_setf(reterr, EBADMSG, "not a message: %s", problem.text);
        if (r >= 0)
                r = find_message_type(schema, storage->root, ret_type, reterr);
        if (r >= 0)
                r = read_message_fields(schema, *ret_type, storage, message, reterr);
        if (r < 0) {
                message_storage_free(storage);
                return r;
        }
        *ret_storage = storage;
        return 0;
}

int shim_request_decode(const char *packet, size_t length, ShimRequest *ret, Error *reterr) {
        ShimRequest request = { 0 };
        unsigned type = 0;
        int r = decode_message(&request_schema, packet, length, &type, &request, &request.storage,
                               reterr);

        *ret = (ShimRequest){ 0 };
        if (r < 0)
                return r;
        request.type = (ShimRequestType) type;
        *ret = request;
        return 0;
}

static void set_missing_event_strings(ShimEvent *event) {
        event->name = strna(event->name);
        event->note = strna(event->note);
        event->message = strna(event->message);
        event->output = strna(event->output);
        event->error = strna(event->error);
}

int shim_event_decode(const char *packet, size_t length, ShimEvent *ret, Error *reterr) {
        ShimEvent event = { 0 };
        unsigned type = 0;
        int r = decode_message(&event_schema, packet, length, &type, &event, &event.storage,
                               reterr);

        *ret = (ShimEvent){ 0 };
        if (r < 0)
                return r;
        event.type = (ShimEventType) type;
        set_missing_event_strings(&event);
        *ret = event;
        return 0;
}

void shim_request_done(ShimRequest *request) {
        message_storage_free(request->storage);
        *request = (ShimRequest){ 0 };
}

void shim_event_done(ShimEvent *event) {
        message_storage_free(event->storage);
        *event = (ShimEvent){ 0 };
}

int packet_queue_append(PacketQueue *queue, size_t max_bytes, char *data, size_t length) {
        QueuedPacket *packet, **end = &queue->first;

        if (queue->bytes + length > max_bytes)
                return -ENOBUFS;
        packet = malloc(sizeof(*packet));
        if (!packet)
                return -ENOMEM;
        *packet = (QueuedPacket){ .length = length, .data = data };
        while (*end)
                end = &(*end)->next;
        *end = packet;
        queue->bytes += length;
        return 0;
}

void packet_queue_pop(PacketQueue *queue) {
        QueuedPacket *packet = queue->first;

        queue->first = packet->next;
        queue->bytes -= packet->length;
        free(packet->data);
        free(packet);
}

void packet_queue_clear(PacketQueue *queue) {
        while (queue->first)
                packet_queue_pop(queue);
}
