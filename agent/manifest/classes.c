/* SPDX-License-Identifier: Apache-2.0 */

/* PriorityClass and RuntimeClass from files, with Kubernetes' validation rules; claims and volumes
 * from an API server, which has validated them. */

#include "agent/manifest/pod-rules.h"
#include "agent/model/quantity.h"
#include "common/cleanup.h"

#include <stdarg.h>

/* The place of an error in a document. */
typedef struct ClassPosition {
        const Decoder *decoder;
        const YamlNode *object;
        const DecodePath *path;
} ClassPosition;

/* "overhead.podFixed.cpu" and the message. */
static int class_error(const ClassPosition *position, const char *parent, const char *key,
                       const char *format, ...) printf_like(4, 5);

static int class_error(const ClassPosition *position, const char *parent, const char *key,
                       const char *format, ...) {
        const DecodePath outer = { .parent = position->path, .key = parent };
        const DecodePath path = { .parent = parent ? &outer : position->path, .key = key };
        const YamlNode *around =
                parent ? yaml_node_get(position->object, parent) : position->object;
        const YamlNode *node = around ? yaml_node_get(around, key) : NULL;
        cleanup_free char *sentence = NULL;
        va_list ap;
        int r;

        va_start(ap, format);
        sentence = format_message(format, ap);
        va_end(ap);
        if (!sentence)
                return -ENOMEM;
        r = error_setf(position->decoder->reterr, EINVAL, "%s", sentence);
        return decode_error_at(position->decoder,
                               node     ? node
                               : around ? around
                                        : position->object,
                               &path, r);
}

static int check_priority_class(const ClassPosition *position, const DataObject *object) {
        if (strncmp(object->metadata.name, "system-", 7) == 0)
                return class_error(
                        position, "metadata", "name",
                        "names with the prefix 'system-' are reserved for system use only");
        if (object->priority.value.value > PRIORITY_OF_USERS_MAX)
                return class_error(position, NULL, "value",
                                   "maximum allowed value of a user defined priority is %d",
                                   PRIORITY_OF_USERS_MAX);
        return 0;
}

static int check_runtime_class(const ClassPosition *position, const DataObject *object) {
        const ResourceList *overhead = &object->runtime.overhead.pod_fixed;

        if (overhead->cpu.milli < 0 || overhead->memory.milli < 0)
                return class_error(position, "overhead", "podFixed", "must not be negative");
        if (overhead->extended.n > 0)
                return class_error(position, "overhead", "podFixed",
                                   "must not have %s: a sandbox has no devices",
                                   overhead->extended.items[0].name);
        return 0;
}

int class_object_parse(Decoder *decoder, const YamlNode *node, const DecodePath *path,
                       ObjectKind kind, DataObject **ret) {
        cleanup_with(data_object_freep) DataObject *object = calloc(1, sizeof(*object));
        const ClassPosition position = { .decoder = decoder, .object = node, .path = path };
        int r;

        if (!object)
                return -ENOMEM;
        object->kind = kind;
        r = decode_object(decoder, node, object_schemas[kind], path, object);
        if (r < 0)
                return r;
        if (object->metadata.namespace)
                r = class_error(&position, "metadata", "namespace", "not allowed on this type");
        if (r < 0)
                return r;
        object->metadata.namespace = strdup("");
        if (!object->metadata.namespace)
                return -ENOMEM;
        r = kind == OBJECT_PRIORITY_CLASS ? check_priority_class(&position, object)
                                          : check_runtime_class(&position, object);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(object);
        return 0;
}

int storage_object_parse(Decoder *decoder, const YamlNode *node, const DecodePath *path,
                         ObjectKind kind, DataObject **ret) {
        cleanup_with(data_object_freep) DataObject *object = calloc(1, sizeof(*object));
        int r;

        if (!object)
                return -ENOMEM;
        object->kind = kind;
        r = decode_object(decoder, node, object_schemas[kind], path, object);
        if (r < 0)
                return r;
        if (!object->metadata.namespace && !(object->metadata.namespace = strdup("")))
                return -ENOMEM;
        *ret = TAKE_PTR(object);
        return 0;
}
