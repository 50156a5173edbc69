/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The objects that pods refer to by name: ConfigMap, Secret, PriorityClass, RuntimeClass,
 * PersistentVolumeClaim and its PersistentVolume, CSIDriver and VolumeAttachment. Read by
 * manifest/ and kubeclient/, looked up through an ObjectLookup that the wiring plugs in. Values of
 * a Secret are never shown or logged. */

#include "agent/model/class.h"
#include "agent/model/persistent-volume.h"
#include "agent/model/schema.h"
#include "common/error.h"

#define OBJECT_BYTES_MAX (1 * MIB) /* all values together, the API's limit */

typedef enum ObjectKind {
        OBJECT_CONFIG_MAP,
        OBJECT_SECRET,
        OBJECT_PRIORITY_CLASS,
        OBJECT_RUNTIME_CLASS,
        OBJECT_VOLUME_CLAIM, /* these only of an API server */
        OBJECT_PERSISTENT_VOLUME,
        OBJECT_CSI_DRIVER,
        OBJECT_VOLUME_ATTACHMENT,
        N_OBJECT_KINDS,
} ObjectKind;

/* "ConfigMap"; and in lower case, as in the kubelet's messages. */
extern const char *const object_kind_names[N_OBJECT_KINDS];
extern const char *const object_kind_words[N_OBJECT_KINDS];

/* The required apiVersion. */
extern const char *const object_kind_versions[N_OBJECT_KINDS];

/* True for kinds that no manifest can have. */
bool object_kind_is_api_only(ObjectKind kind);

/* True for kinds without a namespace: it is "" then. */
bool object_kind_is_cluster_wide(ObjectKind kind);

/* How a value of a Secret is encrypted. */
typedef enum ObjectValueSeal {
        OBJECT_VALUE_CLEAR,
        OBJECT_VALUE_AGE,        /* a file of age, for an identity of the node */
        OBJECT_VALUE_CREDENTIAL, /* a credential of systemd, for this machine */
} ObjectValueSeal;

typedef struct ObjectValue {
        char *key;
        char *bytes; /* followed by a NUL that is not counted */
        size_t length;
        bool is_later;  /* from the second of its object's maps */
        bool is_binary; /* from binaryData of a ConfigMap: only a file, never a variable */
        ObjectValueSeal seal;
} ObjectValue;

/* An object as its manifest has it, and its decoded values. */
typedef struct DataObject {
        ObjectKind kind;
        ObjectMeta metadata;
        char *type; /* of a Secret; never NULL after defaulting */
        bool immutable;
        StringMap data;        /* base64 in a Secret */
        StringMap binary_data; /* of a ConfigMap, base64 */
        StringMap string_data; /* of a Secret */
        LIST_OF(ObjectValue)
        values;              /* sorted by key; set when the maps have been decoded and emptied */
        char *sealed_digest; /* of all values, in hex, if one of them is encrypted; or NULL */
        PriorityClass priority;
        RuntimeClass runtime;
        VolumeClaim claim;
        PersistentVolume volume;
        CsiDriverObject csi_driver;
        VolumeAttachment attachment;
} DataObject;

/* By kind. 'kind' and 'values' are not in a table. */
extern const Schema *const object_schemas[N_OBJECT_KINDS];
extern const Schema priority_class_schema;
extern const Schema runtime_class_schema;
extern const Schema persistent_volume_claim_schema;
extern const Schema persistent_volume_schema;
extern const Schema csi_driver_schema;
extern const Schema volume_attachment_schema;

/* A copy of a Secret: its name, source, type and values. 0 or -ENOMEM. */
int data_object_copy_secret(const DataObject *object, DataObject **ret);

/* The name of the credential of systemd that a value must be: "mainstay.<namespace>.<name>.<key>",
 * of at most SECRET_CREDENTIAL_NAME_MAX characters. The caller frees it; NULL: out of memory. */
enum {
        SECRET_CREDENTIAL_NAME_MAX = 255
};
char *secret_credential_name(const char *namespace, const char *name, const char *key);

DataObject *data_object_free(DataObject *object);
DEFINE_CLEANUP(DataObject *, data_object_free)

/* The value of a key, or NULL. */
const ObjectValue *data_object_find(const DataObject *object, const char *key);

/* "configmap default/settings", "runtimeclass kata"; the caller frees it, NULL: out of memory. */
char *data_object_label(const DataObject *object);

/* Identifies one object. Strings are borrowed. */
typedef struct ObjectKey {
        ObjectSource source;
        ObjectKind kind;
        const char *namespace; /* "" for a kind without one */
        const char *name;      /* NULL: the PriorityClass of this source for pods that name none */
} ObjectKey;

/* The key of an object, or of a reference of a pod by name: in its own source and namespace. */
ObjectKey object_key_referred(const ObjectMeta *from, ObjectKind kind, const char *name);

/* The object has this key. */
bool object_key_matches(const ObjectKey *key, const DataObject *object);

/* How modules look up objects. find() returns NULL if the object does not exist. Results are
 * valid until manifests change. */
typedef struct ObjectLookup {
        const DataObject *(*find)(const ObjectKey *key, void *userdata);
        /* Whether the existence of the object is not known yet. Or NULL. */
        bool (*is_awaited)(const ObjectKey *key, void *userdata);
        /* Decrypts a Secret that has encrypted values: the same Secret with its decrypted values.
         * 0; -EAGAIN: later; or -errno; with a message. Or NULL. */
        int (*open)(const DataObject *object, const DataObject **ret, Error *reterr,
                    void *userdata);
        void *userdata;
} ObjectLookup;

/* Looks up the objects to which a pod refers. -ENOENT with the kubelet's message: configmap "x" not
 * found; -EAGAIN with a message if it is not known, or not decrypted yet; -EKEYREJECTED with one if
 * it cannot be decrypted. */
int object_lookup(const ObjectLookup *lookup, const ObjectMeta *pod, ObjectKind kind,
                  const char *name, const DataObject **ret, Error *reterr);

/* Whether the Secret exists and is being decrypted, which this begins, and which takes
 * milliseconds. Objects change when it has ended. */
bool secret_is_being_opened(const ObjectLookup *lookup, const ObjectMeta *pod, const char *name);
