/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/sandbox/protocol.h"

#include "common/cleanup.h"

#include <jansson.h>
#include <limits.h>

/* Both directions are described by tables: which member lies where in the struct, and which types
 * of message have it. One reader and one writer walk them. */

typedef enum Kind {
        KIND_STRING,   /* const char *; must be there when read */
        KIND_OPTIONAL, /* const char *; may be NULL */
        KIND_TEXT,     /* as KIND_OPTIONAL, for people: what is not UTF-8 is replaced */
        KIND_UNSIGNED, /* unsigned */
        KIND_INTEGER,  /* int, pid_t */
        KIND_LARGE,    /* uint64_t, of which 63 bits travel */
        KIND_BOOLEAN,  /* bool */
        KIND_STRINGS,  /* StringList */
} Kind;

typedef struct Member {
        const char *name;
        Kind kind;
        size_t offset;
        unsigned types;
} Member;

typedef struct Schema {
        const char *const *type_names;
        unsigned n_types;
        const Member *members;
        size_t n_members;
} Schema;

enum {
        LISTS_MAX = 4
};

/* What a decoded message lives in. */
typedef struct Storage {
        json_t *root;
        const char **lists[LISTS_MAX]; /* one for each member that is a list */
        size_t n_lists;
} Storage;

_Static_assert(sizeof(pid_t) == sizeof(int), "KIND_INTEGER serves both");

#define BIT(type) (1U << (type))

/* clang-format off */
static const char *const request_names[] = {
        [REQUEST_HELLO]    = "hello",
        [REQUEST_SETUP]    = "setup",
        [REQUEST_RUN]      = "run",
        [REQUEST_STOP]     = "stop",
        [REQUEST_DELETE]   = "delete",
        [REQUEST_TEARDOWN] = "teardown",
        [REQUEST_EXEC]     = "exec",
        [REQUEST_EXEC_IN]  = "exec-in",
        [REQUEST_NOTE]     = "note",
        [REQUEST_SESSION]  = "session",
};

static const char *const event_names[] = {
        [EVENT_HELLO]        = "hello",
        [EVENT_SYNCED]       = "synced",
        [EVENT_READY]        = "ready",
        [EVENT_SETUP_FAILED] = "setup-failed",
        [EVENT_STARTING]     = "starting",
        [EVENT_STARTED]      = "started",
        [EVENT_START_FAILED] = "start-failed",
        [EVENT_EXITED]       = "exited",
        [EVENT_DELETED]      = "deleted",
        [EVENT_EXEC_DONE]    = "exec-done",
        [EVENT_ERROR]        = "error",
};

enum {
        OF_ID = BIT(REQUEST_RUN) | BIT(REQUEST_STOP) | BIT(REQUEST_DELETE) | BIT(REQUEST_EXEC) |
                BIT(REQUEST_EXEC_IN) | BIT(REQUEST_NOTE) | BIT(REQUEST_SESSION),
        OF_PROGRAM = BIT(REQUEST_EXEC) | BIT(REQUEST_EXEC_IN),
        OF_ENDED = BIT(EVENT_EXITED) | BIT(EVENT_START_FAILED),
        OF_ATTEMPT = OF_ENDED | BIT(EVENT_STARTING) | BIT(EVENT_STARTED) | BIT(EVENT_DELETED),
        OF_LIFE = BIT(EVENT_STARTED) | BIT(EVENT_EXITED),
        OF_STATUS = BIT(EVENT_EXITED) | BIT(EVENT_EXEC_DONE),
};

static const Member request_members[] = {
        { "version",       KIND_UNSIGNED, offsetof(Request, version),       BIT(REQUEST_HELLO)  },
        { "fstab",         KIND_STRING,   offsetof(Request, fstab),         BIT(REQUEST_SETUP)  },
        { "hostname",      KIND_OPTIONAL, offsetof(Request, hostname),      BIT(REQUEST_SETUP)  },
        { "log_max_size",  KIND_LARGE,    offsetof(Request, log_max_size),  BIT(REQUEST_SETUP)  },
        { "log_max_files", KIND_UNSIGNED, offsetof(Request, log_max_files), BIT(REQUEST_SETUP)  },
        { "id",            KIND_STRING,   offsetof(Request, id),            OF_ID               },
        { "name",          KIND_STRING,   offsetof(Request, name),          BIT(REQUEST_RUN)    },
        { "attempt",       KIND_UNSIGNED, offsetof(Request, attempt),       BIT(REQUEST_RUN)    },
        { "bundle",        KIND_STRING,   offsetof(Request, bundle),        BIT(REQUEST_RUN)    },
        { "log",           KIND_STRING,   offsetof(Request, log),           BIT(REQUEST_RUN)    },
        { "journal_fields", KIND_STRINGS, offsetof(Request, journal_fields), BIT(REQUEST_RUN)   },
        { "events_file",   KIND_OPTIONAL, offsetof(Request, events_file),   BIT(REQUEST_RUN)    },
        { "note",          KIND_OPTIONAL, offsetof(Request, note),          BIT(REQUEST_RUN) | BIT(REQUEST_NOTE) },
        { "has_input",     KIND_BOOLEAN,  offsetof(Request, has_input),     BIT(REQUEST_RUN) | BIT(REQUEST_SESSION) },
        { "has_terminal",  KIND_BOOLEAN,  offsetof(Request, has_terminal),  BIT(REQUEST_RUN) | BIT(REQUEST_SESSION) },
        { "signal",        KIND_INTEGER,  offsetof(Request, signal),        BIT(REQUEST_STOP)   },
        { "delay_usec",    KIND_LARGE,    offsetof(Request, delay_usec),    BIT(REQUEST_STOP)   },
        { "grace_usec",    KIND_LARGE,    offsetof(Request, grace_usec),    BIT(REQUEST_STOP)   },
        { "directories",   KIND_STRINGS,  offsetof(Request, directories),   BIT(REQUEST_DELETE) },
        { "container",     KIND_STRING,   offsetof(Request, container),     BIT(REQUEST_EXEC_IN) },
        { "arguments",     KIND_STRINGS,  offsetof(Request, arguments),     OF_PROGRAM | BIT(REQUEST_SESSION) },
        { "environment",   KIND_STRINGS,  offsetof(Request, environment),   BIT(REQUEST_EXEC)   },
        { "input",         KIND_OPTIONAL, offsetof(Request, input),         BIT(REQUEST_EXEC)   },
        { "in_host",       KIND_BOOLEAN,  offsetof(Request, in_host),       BIT(REQUEST_EXEC)   },
        { "timeout_usec",  KIND_LARGE,    offsetof(Request, timeout_usec),  OF_PROGRAM          },
        { "interface",     KIND_OPTIONAL, offsetof(Request, interface),     BIT(REQUEST_EXEC)   },
        { "address",       KIND_OPTIONAL, offsetof(Request, address),       BIT(REQUEST_EXEC)   },
        { "has_output",    KIND_BOOLEAN,  offsetof(Request, has_output),    BIT(REQUEST_SESSION) },
        { "has_error",     KIND_BOOLEAN,  offsetof(Request, has_error),     BIT(REQUEST_SESSION) },
};

static const Member event_members[] = {
        { "version",        KIND_UNSIGNED, offsetof(Event, version),        BIT(EVENT_HELLO) },
        { "pid",            KIND_INTEGER,  offsetof(Event, pid),            BIT(EVENT_HELLO) | BIT(EVENT_STARTED) },
        { "ready",          KIND_BOOLEAN,  offsetof(Event, ready),          BIT(EVENT_SYNCED) },
        { "id",             KIND_OPTIONAL, offsetof(Event, id),
          OF_ATTEMPT | BIT(EVENT_EXEC_DONE) | BIT(EVENT_ERROR) },
        { "name",           KIND_OPTIONAL, offsetof(Event, name),           OF_ATTEMPT },
        { "attempt",        KIND_UNSIGNED, offsetof(Event, attempt),        OF_ATTEMPT },
        { "note",           KIND_OPTIONAL, offsetof(Event, note),           OF_ATTEMPT },
        { "replayed",       KIND_BOOLEAN,  offsetof(Event, replayed),       OF_ATTEMPT },
        { "deleted",        KIND_BOOLEAN,  offsetof(Event, deleted),        OF_ENDED },
        { "started_at",     KIND_LARGE,    offsetof(Event, started_at),     OF_LIFE },
        { "finished_at",    KIND_LARGE,    offsetof(Event, finished_at),    BIT(EVENT_EXITED) },
        { "exit_code",      KIND_INTEGER,  offsetof(Event, exit_code),      OF_STATUS },
        { "signal",         KIND_INTEGER,  offsetof(Event, signal),         OF_STATUS },
        { "timed_out",      KIND_BOOLEAN,  offsetof(Event, timed_out),      BIT(EVENT_EXEC_DONE) },
        { "output",         KIND_TEXT,     offsetof(Event, output),         BIT(EVENT_EXEC_DONE) },
        { "error",          KIND_TEXT,     offsetof(Event, error),          BIT(EVENT_EXEC_DONE) },
        { "oom_killed",     KIND_BOOLEAN,  offsetof(Event, oom_killed),     BIT(EVENT_EXITED) },
        { "runtime_failed", KIND_BOOLEAN,  offsetof(Event, runtime_failed), BIT(EVENT_START_FAILED) },
        { "message",        KIND_TEXT,     offsetof(Event, message),
          OF_ATTEMPT | BIT(EVENT_EXEC_DONE) | BIT(EVENT_ERROR) | BIT(EVENT_SETUP_FAILED) },
};

static const Schema request_schema = {
        request_names, N_REQUEST_TYPES, request_members, N_ELEMENTS(request_members),
};

static const Schema event_schema = {
        event_names, N_EVENT_TYPES, event_members, N_ELEMENTS(event_members),
};
/* clang-format on */

_Static_assert(N_ELEMENTS(request_names) == N_REQUEST_TYPES, "every request has a name");
_Static_assert(N_ELEMENTS(event_names) == N_EVENT_TYPES, "every event has a name");

/* Where the member lies in the message. */
static const void *field(const void *message, const Member *member) {
        return (const char *) message + member->offset;
}

static json_t *text_to_json(const char *text) {
        cleanup_free char *copy = NULL;
        json_t *value = json_string(text);

        if (value)
                return value;
        copy = strndup(text, PROTOCOL_OUTPUT_MAX);
        if (!copy)
                return NULL;
        for (char *p = copy; *p; p++)
                if ((unsigned char) *p >= 0x80)
                        *p = '?';
        return json_string(copy);
}

static json_t *strings_to_json(const StringList *list) {
        json_t *array = json_array();

        for (size_t i = 0; array && i < list->n; i++)
                if (json_array_append_new(array, json_string(list->items[i])) < 0) {
                        json_decref(array);
                        return NULL;
                }
        return array;
}

/* NULL where a string cannot be written (or there is no memory); '*ret_absent' where there is
 * nothing to write. */
static json_t *field_to_json(const void *value, Kind kind, bool *ret_absent) {
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
                return kind == KIND_TEXT ? text_to_json(string) : json_string(string);
        case KIND_UNSIGNED:
                return json_integer(*(const unsigned *) value);
        case KIND_INTEGER:
                return json_integer(*(const int *) value);
        case KIND_LARGE:
                return json_integer((json_int_t) MIN(*(const uint64_t *) value, INT64_MAX));
        case KIND_BOOLEAN:
                return json_boolean(*(const bool *) value);
        case KIND_STRINGS:
                return strings_to_json(value);
        }
        return NULL;
}

static int write_members(json_t *root, const Schema *schema, unsigned type, const void *message) {
        for (size_t i = 0; i < schema->n_members; i++) {
                const Member *member = &schema->members[i];
                bool absent;
                json_t *value;

                if (!(member->types & BIT(type)))
                        continue;
                value = field_to_json(field(message, member), member->kind, &absent);
                if (absent)
                        continue;
                if (!value)
                        return -EILSEQ;
                if (json_object_set_new(root, member->name, value) < 0)
                        return -ENOMEM;
        }
        return 0;
}

static int encode(const Schema *schema, unsigned type, const void *message, char **ret_packet,
                  size_t *ret_length) {
        cleanup_free char *packet = NULL;
        json_t *root = json_pack("{s:s}", "type", schema->type_names[type]);
        size_t length;
        int r;

        if (!root)
                return -ENOMEM;
        r = write_members(root, schema, type, message);
        if (r >= 0)
                packet = json_dumps(root, JSON_COMPACT);
        json_decref(root);
        if (r < 0)
                return r;
        if (!packet)
                return -ENOMEM;
        length = strlen(packet);
        if (length > PROTOCOL_PACKET_MAX)
                return -EMSGSIZE;
        *ret_packet = TAKE_PTR(packet);
        *ret_length = length;
        return 0;
}

int request_encode(const Request *request, char **ret_packet, size_t *ret_length) {
        return encode(&request_schema, request->type, request, ret_packet, ret_length);
}

int event_encode(const Event *event, char **ret_packet, size_t *ret_length) {
        return encode(&event_schema, event->type, event, ret_packet, ret_length);
}

static int strings_from_json(json_t *array, Storage *storage, StringList *ret, Error *reterr) {
        const char **strings;
        size_t i;
        json_t *item;

        if (!json_is_array(array))
                return error_setf(reterr, EBADMSG, "is no list");
        if (storage->n_lists == LISTS_MAX)
                return error_setf(reterr, EBADMSG, "is one list too many");
        strings = calloc(json_array_size(array) + 1, sizeof(char *));
        if (!strings)
                return -ENOMEM;
        storage->lists[storage->n_lists++] = strings;
        json_array_foreach(array, i, item) {
                strings[i] = json_string_value(item);
                if (!strings[i])
                        return error_setf(reterr, EBADMSG, "has an item that is no string");
        }
        *ret = (StringList){ strings, json_array_size(array) };
        return 0;
}

static int integer_from_json(json_t *value, json_int_t min, json_int_t max, json_int_t *ret,
                             Error *reterr) {
        json_int_t n = json_integer_value(value);

        if (!json_is_integer(value))
                return error_setf(reterr, EBADMSG, "is no integer");
        if (n < min || n > max)
                return error_setf(reterr, EBADMSG, "is out of range");
        *ret = n;
        return 0;
}

static int string_from_json(json_t *value, const char **ret, Error *reterr) {
        if (!json_is_string(value))
                return error_setf(reterr, EBADMSG, "is no string");
        *ret = json_string_value(value);
        return 0;
}

static int field_from_json(json_t *value, Kind kind, Storage *storage, void *ret, Error *reterr) {
        json_int_t n = 0;
        int r;

        switch (kind) {
        case KIND_STRING:
        case KIND_OPTIONAL:
        case KIND_TEXT:
                return string_from_json(value, ret, reterr);
        case KIND_UNSIGNED:
                r = integer_from_json(value, 0, UINT_MAX, &n, reterr);
                if (r >= 0)
                        *(unsigned *) ret = (unsigned) n;
                return r;
        case KIND_INTEGER:
                r = integer_from_json(value, INT_MIN, INT_MAX, &n, reterr);
                if (r >= 0)
                        *(int *) ret = (int) n;
                return r;
        case KIND_LARGE:
                r = integer_from_json(value, 0, INT64_MAX, &n, reterr);
                if (r >= 0)
                        *(uint64_t *) ret = (uint64_t) n;
                return r;
        case KIND_BOOLEAN:
                if (!json_is_boolean(value))
                        return error_setf(reterr, EBADMSG, "is no boolean");
                *(bool *) ret = json_boolean_value(value);
                return 0;
        case KIND_STRINGS:
                return strings_from_json(value, storage, ret, reterr);
        }
        return -EBADMSG;
}

static int read_members(const Schema *schema, unsigned type, Storage *storage, void *message,
                        Error *reterr) {
        for (size_t i = 0; i < schema->n_members; i++) {
                const Member *member = &schema->members[i];
                json_t *value;
                int r;

                if (!(member->types & BIT(type)))
                        continue;
                value = json_object_get(storage->root, member->name);
                if (!value && member->kind != KIND_STRING)
                        continue;
                if (!value)
                        return error_setf(reterr, EBADMSG, "%s: '%s' is missing",
                                          schema->type_names[type], member->name);
                r = field_from_json(value, member->kind, storage, (char *) message + member->offset,
                                    reterr);
                if (r < 0)
                        return error_prefixf(reterr, r, "%s: '%s'", schema->type_names[type],
                                             member->name);
        }
        return 0;
}

static int find_type(const Schema *schema, const json_t *root, unsigned *ret, Error *reterr) {
        const char *name = json_string_value(json_object_get(root, "type"));

        if (!name)
                return error_setf(reterr, EBADMSG, "not a message: it has no type");
        for (unsigned i = 0; i < schema->n_types; i++)
                if (streq(schema->type_names[i], name)) {
                        *ret = i;
                        return 0;
                }
        return error_setf(reterr, ENOTSUP, "unknown message '%.64s'", name);
}

static void storage_free(Storage *storage) {
        if (!storage)
                return;
        json_decref(storage->root);
        for (size_t i = 0; i < storage->n_lists; i++)
                free(storage->lists[i]);
        free(storage);
}

static int decode(const Schema *schema, const char *packet, size_t length, unsigned *ret_type,
                  void *message, void **ret_storage, Error *reterr) {
        json_error_t problem;
        Storage *storage;
        int r;

        *ret_type = 0;
        if (length > PROTOCOL_PACKET_MAX)
                return error_setf(reterr, EBADMSG, "not a message: it is too long");
        storage = calloc(1, sizeof(*storage));
        if (!storage)
                return -ENOMEM;
        storage->root = json_loadb(packet, length, JSON_REJECT_DUPLICATES, &problem);
        if (!storage->root)
                r = error_setf(reterr, EBADMSG, "not a message: %s", problem.text);
        else
                r = find_type(schema, storage->root, ret_type, reterr);
        if (r >= 0)
                r = read_members(schema, *ret_type, storage, message, reterr);
        if (r < 0) {
                storage_free(storage);
                return r;
        }
        *ret_storage = storage;
        return 0;
}

int request_decode(const char *packet, size_t length, Request *ret, Error *reterr) {
        Request request = { 0 };
        unsigned type = 0;
        int r = decode(&request_schema, packet, length, &type, &request, &request.storage, reterr);

        *ret = (Request){ 0 };
        if (r < 0)
                return r;
        request.type = (RequestType) type;
        *ret = request;
        return 0;
}

int event_decode(const char *packet, size_t length, Event *ret, Error *reterr) {
        Event event = { 0 };
        unsigned type = 0;
        int r = decode(&event_schema, packet, length, &type, &event, &event.storage, reterr);

        *ret = (Event){ 0 };
        if (r < 0)
                return r;
        event.type = (EventType) type;
        *ret = event;
        return 0;
}

void request_done(Request *request) {
        storage_free(request->storage);
        *request = (Request){ 0 };
}

void event_done(Event *event) {
        storage_free(event->storage);
        *event = (Event){ 0 };
}

int packet_queue_append(PacketQueue *queue, size_t max_bytes, char *data, size_t length) {
        Packet *packet, **end = &queue->first;

        if (queue->bytes + length > max_bytes)
                return -ENOBUFS;
        packet = malloc(sizeof(*packet));
        if (!packet)
                return -ENOMEM;
        *packet = (Packet){ .length = length, .data = data };
        while (*end)
                end = &(*end)->next;
        *end = packet;
        queue->bytes += length;
        return 0;
}

void packet_queue_pop(PacketQueue *queue) {
        Packet *packet = queue->first;

        queue->first = packet->next;
        queue->bytes -= packet->length;
        free(packet->data);
        free(packet);
}

void packet_queue_clear(PacketQueue *queue) {
        while (queue->first)
                packet_queue_pop(queue);
}
