/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* What pods refer to by name: ConfigMap and Secret, which are named bytes, PriorityClass and
 * RuntimeClass. Read by manifest/, looked up by others through an ObjectLookup that agent.c plugs
 * in. Values of a Secret are never shown or logged. */

#include "agent/model/class.h"
#include "agent/model/schema.h"
#include "common/error.h"

#define OBJECT_BYTES_MAX (1 * MIB) /* all values together, as in the API */

typedef enum ObjectKind {
        OBJECT_CONFIG_MAP,
        OBJECT_SECRET,
        OBJECT_PRIORITY_CLASS,
        OBJECT_RUNTIME_CLASS,
        N_OBJECT_KINDS,
} ObjectKind;

/* "ConfigMap", and in lower case as the kubelet's sentences have it. */
extern const char *const object_kind_names[N_OBJECT_KINDS];
extern const char *const object_kind_words[N_OBJECT_KINDS];

/* What apiVersion must say. */
extern const char *const object_kind_versions[N_OBJECT_KINDS];

/* True where objects of the kind are in no namespace: theirs is "" then. */
bool object_kind_is_cluster_wide(ObjectKind kind);

typedef struct ObjectValue {
        char *key;
        char *bytes; /* a NUL follows that is not counted */
        size_t length;
        bool is_later;  /* of the second of its object's maps */
        bool is_binary; /* of a ConfigMap's binaryData: a file, but no variable */
} ObjectValue;

/* What a manifest says, and what it comes to. */
typedef struct DataObject {
        ObjectKind kind;
        ObjectMeta metadata;
        char *type; /* of a Secret; never NULL after defaulting */
        bool immutable;
        StringMap data;              /* base64 in a Secret */
        StringMap binary_data;       /* of a ConfigMap, base64 */
        StringMap string_data;       /* of a Secret */
        LIST_OF(ObjectValue) values; /* sorted by key; the maps are empty then */
        PriorityClass priority;
        RuntimeClass runtime;
} DataObject;

/* By kind; 'kind' and 'values' are in no table. */
extern const Schema *const object_schemas[N_OBJECT_KINDS];
extern const Schema priority_class_schema;
extern const Schema runtime_class_schema;

DataObject *data_object_free(DataObject *object);
DEFINE_CLEANUP(DataObject *, data_object_free)

/* The value of a key, or NULL. */
const ObjectValue *data_object_find(const DataObject *object, const char *key);

/* "configmap default/settings", "runtimeclass kata"; the caller frees it, NULL where memory ends.
 */
char *data_object_label(const DataObject *object);

/* How rooms find objects: NULL where there is none of that name. Without a name it is the
 * PriorityClass of pods that name none. Valid until the manifests change. */
typedef struct ObjectLookup {
        const DataObject *(*find)(ObjectKind kind, const char *namespace, const char *name,
                                  void *userdata);
        /* It is not known yet whether there is one. Or NULL. */
        bool (*is_awaited)(ObjectKind kind, const char *namespace, const char *name,
                           void *userdata);
        void *userdata;
} ObjectLookup;

/* The object of a pod's namespace; -ENOENT with the kubelet's sentence: configmap "x" not found;
 * -EAGAIN with one where that is not known yet. */
int object_lookup(const ObjectLookup *lookup, ObjectKind kind, const char *namespace,
                  const char *name, const DataObject **ret, Error *reterr);
