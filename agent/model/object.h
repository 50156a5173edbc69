/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

/* The objects that pods refer to by name: ConfigMap, Secret, PriorityClass, RuntimeClass,
 * PersistentVolumeClaim and its PersistentVolume, CSIDriver and VolumeAttachment. Read by manifest/
 * and kubeclient/, looked up through an ObjectLookup that the wiring connects. Values of a Secret
 * are never shown or logged. */

#include "agent/model/class.h"
#include "agent/model/persistent-volume.h"
#include "agent/model/schema.h"
#include "common/error.h"

#define OBJECT_BYTES_MAX (1 * MIB) /* of all values together, the API's limit */

typedef enum ObjectKind {
        OBJECT_CONFIG_MAP,
        OBJECT_SECRET,
        OBJECT_PRIORITY_CLASS,
        OBJECT_RUNTIME_CLASS,
        OBJECT_VOLUME_CLAIM, /* these come only from an API server */
        OBJECT_PERSISTENT_VOLUME,
        OBJECT_CSI_DRIVER,
        OBJECT_VOLUME_ATTACHMENT,
        N_OBJECT_KINDS,
} ObjectKind;

/* "ConfigMap"; and the name in the kubelet's messages, in lower case. */
extern const char *const object_kind_names[N_OBJECT_KINDS];
extern const char *const object_kind_words[N_OBJECT_KINDS];

/* The required apiVersion. */
extern const char *const object_kind_versions[N_OBJECT_KINDS];

/* Whether no manifest may contain objects of this kind. */
bool object_kind_is_api_only(ObjectKind kind);

/* Whether objects of this kind have no namespace, in which case the namespace is "". */
bool object_kind_is_cluster_wide(ObjectKind kind);

/* How a value of a Secret is encrypted. */
typedef enum ObjectValueSeal {
        OBJECT_VALUE_CLEAR,
        OBJECT_VALUE_AGE,        /* a file of age, encrypted to an identity of the node */
        OBJECT_VALUE_CREDENTIAL, /* a systemd credential for this machine */
} ObjectValueSeal;

typedef struct ObjectValue {
        char *key;
        char *bytes; /* followed by a NUL that is not counted */
        size_t length;
        bool is_later;  /* it comes from the second map of its object */
        bool is_binary; /* from binaryData of a ConfigMap: only usable as a file, not as a
                         * variable */
        ObjectValueSeal seal;
} ObjectValue;

/* An object as it is in its manifest, and its decoded values. */
typedef struct DataObject {
        ObjectKind kind;
        ObjectMeta metadata;
        char *type; /* for a Secret; never NULL after defaulting */
        bool immutable;
        StringMap data;        /* base64 in a Secret */
        StringMap binary_data; /* for a ConfigMap, base64 */
        StringMap string_data; /* for a Secret */
        LIST_OF(ObjectValue)
        values;              /* sorted by key; set once the maps have been decoded and emptied */
        char *sealed_digest; /* digest of all values, in hex, if one of them is encrypted; or
                              * NULL */
        PriorityClass priority;
        RuntimeClass runtime;
        VolumeClaim claim;
        PersistentVolume volume;
        CsiDriverObject csi_driver;
        VolumeAttachment attachment;
} DataObject;

/* By kind. The tables do not contain 'kind' and 'values'. */
extern const Schema *const object_schemas[N_OBJECT_KINDS];
extern const Schema priority_class_schema;
extern const Schema runtime_class_schema;
extern const Schema persistent_volume_claim_schema;
extern const Schema persistent_volume_schema;
extern const Schema csi_driver_schema;
extern const Schema volume_attachment_schema;

/* A copy of a Secret: with name, source, type and values. 0 or -ENOMEM. */
int data_object_copy_secret(const DataObject *object, DataObject **ret);

/* The name that a systemd credential for a value must have: "mainstay.<namespace>.<name>.<key>", of
 * at most SECRET_CREDENTIAL_NAME_MAX characters. The caller frees it; NULL: out of memory. */
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
        const char *namespace; /* "" for kinds without a namespace */
        const char *name;      /* NULL: the source's default PriorityClass */
} ObjectKey;

/* The key of an object, or of an object to which a pod refers by name: in the pod's own source and
 * namespace. */
ObjectKey object_key_referred(const ObjectMeta *from, ObjectKind kind, const char *name);

/* Whether the object has this key. */
bool object_key_matches(const ObjectKey *key, const DataObject *object);

/* How modules look up objects. find() returns NULL if the object does not exist. Results are
 * valid until manifests change. */
typedef struct ObjectLookup {
        const DataObject *(*find)(const ObjectKey *key, void *userdata);
        /* Whether the existence of the object is not known yet. May be NULL. */
        bool (*is_awaited)(const ObjectKey *key, void *userdata);
        /* Decrypts a Secret that has encrypted values, and returns the same Secret with decrypted
         * values. 0; with a message: -EAGAIN: it will be decrypted later; or -errno. May be NULL.
         */
        int (*open)(const DataObject *object, const DataObject **ret, Error *reterr,
                    void *userdata);
        void *userdata;
} ObjectLookup;

/* Looks up the objects to which a pod refers. -ENOENT with the kubelet's message: configmap "x" not
 * found; -EAGAIN with a message if it is not known or decrypted yet; -EKEYREJECTED with a message
 * if it cannot be decrypted. */
int object_lookup(const ObjectLookup *lookup, const ObjectMeta *pod, ObjectKind kind,
                  const char *name, const DataObject **ret, Error *reterr);

/* Whether the Secret exists and is being decrypted. Starts the decryption, which takes milliseconds
 * and ends with a notification that objects have changed. */
bool secret_is_being_opened(const ObjectLookup *lookup, const ObjectMeta *pod, const char *name);
