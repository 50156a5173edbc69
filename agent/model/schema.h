/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A Schema is the table of an API object's fields. It is the parser (manifest/decode walks it), the
 * writer, the comparison, the end of the object, the list of what we support and the list of what
 * tests must show, at once. To support a field, add a member to the struct and a row to its table.
 */

#include "agent/model/values.h"
#include "common/error.h"

typedef enum FieldType {
        FIELD_STRING,        /* char * */
        FIELD_BOOL,          /* bool; false is the same as absent */
        FIELD_OPTIONAL_BOOL, /* OptionalBool */
        FIELD_INT,           /* OptionalInt */
        FIELD_INTS,          /* IntList */
        FIELD_INT_OR_STRING, /* IntOrString; .check is of the string, .min and .max of the number */
        FIELD_QUANTITY,      /* Quantity */
        FIELD_PORT,          /* IntOrString: a number or the name of a port */
        FIELD_ENUM,          /* an enum whose value 0 is "unset"; .names */
        FIELD_STRINGS,       /* char ** */
        FIELD_STRING_MAP,    /* StringMap */
        FIELD_OBJECT,        /* an embedded struct; .schema */
        FIELD_OPTIONAL,      /* a pointer to a struct, NULL where absent; .schema */
        FIELD_LIST,          /* LIST_OF(struct); .schema */
        FIELD_REFUSED, /* Kubernetes knows it, we do not honour it (yet): refused, never ignored */
        FIELD_IGNORED, /* means nothing on the way in (status, managedFields…) */
        N_FIELD_TYPES,
} FieldType;

typedef struct Schema Schema;

/* Says what is wrong with a string's value, without naming it: "must be a DNS label, not 'Web_1'".
 */
typedef int (*field_check_t)(const char *value, Error *reterr);

typedef struct Field {
        const char *key;
        FieldType type;
        size_t offset;
        const Schema *schema;
        const char *const *names; /* FIELD_ENUM: by value, [0] is NULL */
        size_t n_names;
        field_check_t check; /* FIELD_STRING, each of FIELD_STRINGS */
        int64_t min, max;    /* FIELD_INT, each of FIELD_INTS, where min < max */
        const char *accepts; /* FIELD_REFUSED: the one value that changes nothing, as "false"; NULL:
                              * none. Empty values ({}, [], null) are always accepted. */
        const char *reason;  /* FIELD_REFUSED: why, for a person; NULL: it is not supported yet */
        bool is_required;
        bool is_api_only; /* read from our records and from an API server; in a manifest it is as
                           * FIELD_REFUSED */
        bool is_not_for_node; /* FIELD_REFUSED in a manifest; in an object of an API server it is
                               * for others than a node, and means nothing */
        bool is_secret;       /* no sentence may show its value */
} Field;

struct Schema {
        const char *name; /* as the API calls the type: "Container" */
        size_t size;
        const Field *fields;
        size_t n_fields;
        const char *closed; /* says of an unknown key why it is an error; NULL: it is a warning */
};

/* Rows. What follows the member are further designated initialisers. */
#define FIELD(name, kind, object, member, ...) \
        { .key = name, .type = FIELD_##kind, .offset = offsetof(object, member), __VA_ARGS__ }
#define REFUSED(name) \
        { .key = name, .type = FIELD_REFUSED }
#define REFUSED_BUT(name, value, ...) \
        { .key = name, .type = FIELD_REFUSED, .accepts = value, __VA_ARGS__ }
#define REFUSED_FOR(name, why) \
        { .key = name, .type = FIELD_REFUSED, .reason = why }
#define FIELD_NOT_FOR_NODE(name, why) \
        { .key = name, .type = FIELD_REFUSED, .reason = why, .is_not_for_node = true }
#define IGNORED(name) \
        { .key = name, .type = FIELD_IGNORED }
#define ENUM_NAMES(table) .names = (table), .n_names = N_ELEMENTS(table)
#define SCHEMA(type, table) \
        { .name = #type, .size = sizeof(type), .fields = (table), .n_fields = N_ELEMENTS(table) }

extern const Schema pod_schema; /* apiVersion and kind are read before it */
extern const Schema object_meta_schema;
extern const Schema pod_spec_schema;
extern const Schema container_schema;
extern const Schema volume_schema;
extern const Schema volume_mount_schema;
extern const Schema resource_list_schema;
extern const Schema resource_requirements_schema;
extern const Schema probe_schema;
extern const Schema lifecycle_schema;
extern const Schema any_handler_schema; /* of a Handler, whosoever it is */
extern const Schema security_context_schema;
extern const Schema pod_security_context_schema;
extern const Schema label_selector_schema;
extern const Schema affinity_schema;
extern const Schema node_selector_schema;
extern const Schema toleration_schema;
extern const Schema taint_schema;
extern const Schema owner_reference_schema;
extern const Schema pod_template_schema; /* of a Pod */
extern const Schema daemonset_schema;

/* Where a field lies in an object. */
void *field_at(const Field *field, void *object);
const void *field_at_const(const Field *field, const void *object);

/* Lists are looked at through this, whatever they are of. */
List field_list(const Field *field, const void *object);

/* Frees all that the object holds and zeroes it; the object itself is the caller's. */
void schema_done(const Schema *schema, void *object);

bool schema_equal(const Schema *schema, const void *a, const void *b);

/* Deep copy into a zeroed object. 0 or -ENOMEM, and then nothing is held. */
int schema_copy(const Schema *schema, void *to, const void *from);
