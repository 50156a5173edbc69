/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* A Schema is the table of an API object's fields. It drives the parser (manifest/decode), the
 * writer, comparison, copying and freeing; it is also the list of supported fields, and the tests
 * must cover it. To support a field, add a member to the struct and a row to its table. */

#include "agent/model/values.h"
#include "common/error.h"

typedef enum FieldType {
        FIELD_STRING,        /* char * */
        FIELD_BOOL,          /* bool; false is the same as absent */
        FIELD_OPTIONAL_BOOL, /* OptionalBool */
        FIELD_INT,           /* OptionalInt */
        FIELD_INTS,          /* IntList */
        FIELD_INT_OR_STRING, /* IntOrString; .check applies to the string, .min and .max to the
                                number */
        FIELD_QUANTITY,      /* Quantity */
        FIELD_PORT,          /* IntOrString: a number or the name of a port */
        FIELD_ENUM,          /* an enum whose value 0 is "unset"; .names */
        FIELD_STRINGS,       /* char ** */
        FIELD_STRING_MAP,    /* StringMap */
        FIELD_OBJECT,        /* an embedded struct; .schema */
        FIELD_OPTIONAL,      /* a pointer to a struct, NULL if absent; .schema */
        FIELD_LIST,          /* LIST_OF(struct); .schema */
        FIELD_MAP,           /* the same, written as a map: .schema has a row for the key, a
                                FIELD_STRING, and one for its value */
        FIELD_REST, /* like FIELD_MAP, but its entries are keys of the object itself: those with a
                       domain ("example.com/key") that have no row; sorted */
        FIELD_PRESENT, /* bool: whether an API server's object has the field, regardless of its
                        * value; refused in a manifest */
        FIELD_REFUSED, /* a field of Kubernetes that is not supported (yet): refused, not ignored
                        */
        FIELD_IGNORED, /* has no effect as input (status, managedFields…) */
        N_FIELD_TYPES,
} FieldType;

typedef struct Schema Schema;

/* Describes the problem of a string's value without naming the field: "must be a DNS label, not
 * 'Web_1'". */
typedef int (*field_check_t)(const char *value, Error *reterr);

typedef struct Field {
        const char *key;
        FieldType type;
        size_t offset;
        const Schema *schema;
        const char *const *names; /* FIELD_ENUM: indexed by value, [0] is NULL */
        size_t n_names;
        unsigned other;      /* FIELD_ENUM: the value that represents names from an API server that
                                are not known here; its own name is used only in records. 0: unknown
                                names are errors */
        bool ignores_other;  /* FIELD_ENUM: unknown names are read as this value, which has its own
                              * name, as in the kubelet; 0: as if absent */
        field_check_t check; /* FIELD_STRING, and each item of FIELD_STRINGS */
        int64_t min, max;    /* FIELD_INT, and each item of FIELD_INTS, if min < max */
        const char *accepts; /* FIELD_REFUSED: the one value that has no effect, such as "false";
                                NULL: none, and only empty values ({}, [], "") are accepted */
        const char *reason;  /* FIELD_REFUSED: the reason for the message; NULL: not supported yet.
                                FIELD_IGNORED: its kind, if it has an effect outside of the table */
        bool is_required;
        bool is_api_only; /* accepted in the agent's records and from an API server; in a manifest
                             like FIELD_REFUSED */
        bool (*is_manifest_key)(const char *key); /* FIELD_REST: accepts keys in a manifest even if
                                                     .is_api_only; NULL: none */
        bool is_not_for_node; /* FIELD_REFUSED in a manifest; ignored in an object of an API server,
                               * where it concerns components other than the node */
        bool is_only_warned_of; /* FIELD_REFUSED or .is_api_only: ignored in a manifest, with
                                 * .reason as a warning */
        bool is_secret;         /* its value must not appear in any message */
        bool is_not_empty; /* FIELD_STRING, FIELD_ENUM: an empty text is an error in a manifest */
        bool null_is_zero; /* FIELD_QUANTITY: null is 0, as in an API server if a map has the
                            * key */
        bool is_manifest_check;    /* .check is stricter than an API server, and is not applied to
                                      its objects: a pod with another value fails when the value is
                                      used */
        bool is_manifest_required; /* likewise .is_required */
} Field;

struct Schema {
        const char *name; /* the name of the API type: "Container" */
        size_t size;
        const Field *fields;
        size_t n_fields;
        const char *closed; /* the reason why an unknown key is an error; NULL: it is a warning */
        bool is_strict;     /* an unknown key is an error; the message suggests another one */
};

/* Rows. Additional designated initialisers may follow the member. */
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
#define PRESENT(name, object, member, why) \
        FIELD(name, PRESENT, object, member, .is_api_only = true, .reason = why)
#define IGNORED(name) \
        { .key = name, .type = FIELD_IGNORED }
#define IGNORED_BUT(name, what) \
        { .key = name, .type = FIELD_IGNORED, .reason = what }
#define ENUM_NAMES(table) .names = (table), .n_names = N_ELEMENTS(table)
#define SCHEMA(type, table, ...)                                        \
        {                                                               \
                .name = #type, .size = sizeof(type), .fields = (table), \
                .n_fields = N_ELEMENTS(table), __VA_ARGS__              \
        }

extern const Schema pod_schema; /* apiVersion and kind have already been read */
extern const Schema object_meta_schema;
extern const Schema pod_spec_schema;
extern const Schema container_schema;
extern const Schema ephemeral_container_schema; /* for a Container, with fewer fields */
extern const Schema host_path_schema;
extern const Schema nfs_volume_schema;
extern const Schema volume_schema;
extern const Schema volume_mount_schema;
extern const Schema resource_list_schema;
extern const Schema resource_requirements_schema;
extern const Schema probe_schema;
extern const Schema lifecycle_schema;
extern const Schema any_handler_schema; /* the union of all handlers */
extern const Schema security_context_schema;
extern const Schema pod_security_context_schema;
extern const Schema label_selector_schema;
extern const Schema affinity_schema;
extern const Schema node_selector_schema;
extern const Schema toleration_schema;
extern const Schema taint_schema;
extern const Schema owner_reference_schema;
extern const Schema pod_template_schema; /* for the template of a DaemonSet */
extern const Schema daemonset_schema;
extern const Schema daemonset_spec_schema;

/* The number of names of a FIELD_ENUM that a manifest may contain, including the absent first
 * one. */
size_t field_count_names(const Field *field);

/* The address of a field in an object. */
void *field_at(const Field *field, void *object);
const void *field_at_const(const Field *field, const void *object);

/* Generic access to a list of any element type. */
List field_list(const Field *field, const void *object);

/* Frees everything that the object holds and zeroes it; the caller owns the object itself. */
void schema_done(const Schema *schema, void *object);

bool schema_equal(const Schema *schema, const void *a, const void *b);

/* Deep copy into a zeroed object. 0; or -ENOMEM, in which case nothing needs to be freed. */
int schema_copy(const Schema *schema, void *to, const void *from);
