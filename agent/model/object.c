/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/model/object.h"

#include "agent/model/names.h"
#include "agent/model/object-identity.h"
#include "common/text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

const char *const object_kind_names[N_OBJECT_KINDS] = {
        [OBJECT_CONFIG_MAP] = "ConfigMap",
        [OBJECT_SECRET] = "Secret",
        [OBJECT_PRIORITY_CLASS] = "PriorityClass",
        [OBJECT_RUNTIME_CLASS] = "RuntimeClass",
        [OBJECT_VOLUME_CLAIM] = "PersistentVolumeClaim",
        [OBJECT_PERSISTENT_VOLUME] = "PersistentVolume",
        [OBJECT_CSI_DRIVER] = "CSIDriver",
        [OBJECT_VOLUME_ATTACHMENT] = "VolumeAttachment",
};

const char *const object_kind_words[N_OBJECT_KINDS] = {
        [OBJECT_CONFIG_MAP] = "configmap",
        [OBJECT_SECRET] = "secret",
        [OBJECT_PRIORITY_CLASS] = "priorityclass",
        [OBJECT_RUNTIME_CLASS] = "runtimeclass",
        [OBJECT_VOLUME_CLAIM] = "persistentvolumeclaim",
        [OBJECT_PERSISTENT_VOLUME] = "persistentvolume",
        [OBJECT_CSI_DRIVER] = "csidriver.storage.k8s.io",
        [OBJECT_VOLUME_ATTACHMENT] = "volumeattachment.storage.k8s.io",
};

const char *const object_kind_versions[N_OBJECT_KINDS] = {
        [OBJECT_CONFIG_MAP] = "v1",
        [OBJECT_SECRET] = "v1",
        [OBJECT_PRIORITY_CLASS] = "scheduling.k8s.io/v1",
        [OBJECT_RUNTIME_CLASS] = "node.k8s.io/v1",
        [OBJECT_VOLUME_CLAIM] = "v1",
        [OBJECT_PERSISTENT_VOLUME] = "v1",
        [OBJECT_CSI_DRIVER] = "storage.k8s.io/v1",
        [OBJECT_VOLUME_ATTACHMENT] = "storage.k8s.io/v1",
};

bool object_kind_is_cluster_wide(ObjectKind kind) {
        return kind == OBJECT_PRIORITY_CLASS || kind == OBJECT_RUNTIME_CLASS ||
               kind == OBJECT_PERSISTENT_VOLUME || kind == OBJECT_CSI_DRIVER ||
               kind == OBJECT_VOLUME_ATTACHMENT;
}

bool object_kind_is_api_only(ObjectKind kind) {
        return kind == OBJECT_VOLUME_CLAIM || kind == OBJECT_PERSISTENT_VOLUME ||
               kind == OBJECT_CSI_DRIVER || kind == OBJECT_VOLUME_ATTACHMENT;
}

/* clang-format off */
static const Field config_map_fields[] = {
        IGNORED("kind"),
        IGNORED("apiVersion"),
        FIELD("metadata",               OBJECT,     DataObject, metadata, .is_required = true,
              .schema = &object_meta_schema),
        FIELD("immutable",              BOOL,       DataObject, immutable),
        FIELD("data",                   STRING_MAP, DataObject, data),
        FIELD("binaryData",             STRING_MAP, DataObject, binary_data),
};
static const Schema config_map_schema = {
        .name = "ConfigMap", .size = sizeof(DataObject),
        .fields = config_map_fields, .n_fields = N_ELEMENTS(config_map_fields),
};

static const Field secret_fields[] = {
        IGNORED("kind"),
        IGNORED("apiVersion"),
        FIELD("metadata",               OBJECT,     DataObject, metadata, .is_required = true,
              .schema = &object_meta_schema),
        FIELD("immutable",              BOOL,       DataObject, immutable),
        FIELD("data",                   STRING_MAP, DataObject, data, .is_secret = true),
        FIELD("stringData",             STRING_MAP, DataObject, string_data, .is_secret = true),
        FIELD("type",                   STRING,     DataObject, type),
};
static const Schema secret_schema = {
        .name = "Secret", .size = sizeof(DataObject),
        .fields = secret_fields, .n_fields = N_ELEMENTS(secret_fields),
};
/* clang-format on */

const Schema *const object_schemas[N_OBJECT_KINDS] = {
        [OBJECT_CONFIG_MAP] = &config_map_schema,
        [OBJECT_SECRET] = &secret_schema,
        [OBJECT_PRIORITY_CLASS] = &priority_class_schema,
        [OBJECT_RUNTIME_CLASS] = &runtime_class_schema,
        [OBJECT_VOLUME_CLAIM] = &persistent_volume_claim_schema,
        [OBJECT_PERSISTENT_VOLUME] = &persistent_volume_schema,
        [OBJECT_CSI_DRIVER] = &csi_driver_schema,
        [OBJECT_VOLUME_ATTACHMENT] = &volume_attachment_schema,
};

DataObject *data_object_free(DataObject *object) {
        if (!object)
                return NULL;
        for (size_t i = 0; i < object->values.n; i++) {
                ObjectValue *value = &object->values.items[i];

                /* The values are erased, so that no secret stays in freed memory. */
                if (value->bytes)
                        explicit_bzero(value->bytes, value->length);
                free(value->bytes);
                free(value->key);
        }
        free(object->values.items);
        free(object->sealed_digest);
        schema_done(object_schemas[object->kind], object);
        free(object);
        return NULL;
}

static int compare_object_value_key(const void *key, const void *value) {
        return strcmp(key, ((const ObjectValue *) value)->key);
}

const ObjectValue *data_object_find(const DataObject *object, const char *key) {
        if (object->values.n == 0)
                return NULL;
        return bsearch(key, object->values.items, object->values.n, sizeof(ObjectValue),
                       compare_object_value_key);
}

char *data_object_label(const DataObject *object) {
        const char *namespace = object->metadata.namespace;

        return text_format("%s %s%s%s", object_kind_words[object->kind], namespace,
                           namespace[0] ? "/" : "", object->metadata.name);
}

ObjectKey object_key_referred(const ObjectMeta *from, ObjectKind kind, const char *name) {
        return (ObjectKey){ .source = from->source,
                            .kind = kind,
                            .namespace = object_kind_is_cluster_wide(kind) ? "" : from->namespace,
                            .name = name };
}

bool object_key_matches(const ObjectKey *key, const DataObject *object) {
        return key->kind == object->kind &&
               object_sources_match(key->source, object->metadata.source) &&
               object_has_name(&object->metadata, key->namespace, key->name);
}

int object_lookup(const ObjectLookup *lookup, const ObjectMeta *pod, ObjectKind kind,
                  const char *name, const DataObject **ret, Error *reterr) {
        const ObjectKey key = object_key_referred(pod, kind, name);
        const DataObject *object = lookup->find ? lookup->find(&key, lookup->userdata) : NULL;

        if (!object && lookup->is_awaited && lookup->is_awaited(&key, lookup->userdata))
                return error_setf(reterr, EAGAIN,
                                  "%s \"%s\" has not been received from the API server yet",
                                  object_kind_words[kind], name);
        if (!object)
                return error_setf(reterr, ENOENT, "%s \"%s\" not found", object_kind_words[kind],
                                  name);
        if (object->sealed_digest) {
                int r = lookup->open ? lookup->open(object, &object, reterr, lookup->userdata)
                                     : error_setf(reterr, EKEYREJECTED, "is encrypted");

                if (r < 0)
                        return error_prefixf(reterr, r, "%s \"%s\"", object_kind_words[kind], name);
        }
        *ret = object;
        return 0;
}

bool secret_is_being_opened(const ObjectLookup *lookup, const ObjectMeta *pod, const char *name) {
        const ObjectKey key = object_key_referred(pod, OBJECT_SECRET, name);
        const DataObject *object = lookup->find ? lookup->find(&key, lookup->userdata) : NULL;

        return object && object->sealed_digest && lookup->open &&
               lookup->open(object, &object, NULL, lookup->userdata) == -EAGAIN;
}

char *secret_credential_name(const char *namespace, const char *name, const char *key) {
        return text_format("mainstay.%s.%s.%s", namespace, name, key);
}

static int copy_object_values(const DataObject *from, DataObject *to) {
        to->values.items = calloc(from->values.n + 1, sizeof(*to->values.items));
        if (!to->values.items)
                return -ENOMEM;
        for (size_t i = 0; i < from->values.n; i++) {
                const ObjectValue *value = &from->values.items[i];
                ObjectValue *copy = &to->values.items[to->values.n++];

                *copy = *value;
                copy->key = strdup(value->key);
                copy->bytes = calloc(1, value->length + 1);
                if (!copy->key || !copy->bytes)
                        return -ENOMEM;
                memcpy(copy->bytes, value->bytes, value->length);
        }
        return 0;
}

int data_object_copy_secret(const DataObject *object, DataObject **ret) {
        cleanup_with(data_object_freep) DataObject *copy = calloc(1, sizeof(*copy));

        if (!copy)
                return -ENOMEM;
        copy->kind = object->kind;
        copy->metadata.source = object->metadata.source;
        if (text_replace(&copy->metadata.name, object->metadata.name) < 0 ||
            text_replace(&copy->metadata.namespace, object->metadata.namespace) < 0 ||
            text_replace(&copy->type, object->type) < 0 ||
            text_replace(&copy->sealed_digest, object->sealed_digest) < 0 ||
            copy_object_values(object, copy) < 0)
                return -ENOMEM;
        *ret = TAKE_PTR(copy);
        return 0;
}
