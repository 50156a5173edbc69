/* SPDX-License-Identifier: Apache-2.0 */

/* PriorityClasses and RuntimeClasses from files, with Kubernetes' rules for them. */

#include "agent/manifest/rules.h"
#include "agent/model/quantity.h"
#include "common/cleanup.h"

#include <stdarg.h>

/* Where in a document a class is wrong. */
typedef struct Place {
        const Decoder *decoder;
        const Node *object;
        const DecodePath *path;
} Place;

/* "overhead.podFixed.cpu" and the sentence. */
static int broken(const Place *place, const char *parent, const char *key, const char *format, ...)
        printf_like(4, 5);

static int broken(const Place *place, const char *parent, const char *key, const char *format,
                  ...) {
        const DecodePath outer = { .parent = place->path, .key = parent };
        const DecodePath path = { .parent = parent ? &outer : place->path, .key = key };
        const Node *around = parent ? node_get(place->object, parent) : place->object;
        const Node *node = around ? node_get(around, key) : NULL;
        cleanup_free char *sentence = NULL;
        va_list ap;
        int r;

        va_start(ap, format);
        r = vasprintf(&sentence, format, ap);
        va_end(ap);
        if (r < 0) {
                sentence = NULL;
                return -ENOMEM;
        }
        r = error_setf(place->decoder->reterr, EINVAL, "%s", sentence);
        return decode_error_at(place->decoder,
                               node     ? node
                               : around ? around
                                        : place->object,
                               &path, r);
}

static int check_priority_class(const Place *place, const DataObject *object) {
        if (strncmp(object->metadata.name, "system-", 7) == 0)
                return broken(place, "metadata", "name",
                              "names with the prefix 'system-' are reserved for system use only");
        if (object->priority.value.value > PRIORITY_OF_USERS_MAX)
                return broken(place, NULL, "value",
                              "maximum allowed value of a user defined priority is %d",
                              PRIORITY_OF_USERS_MAX);
        return 0;
}

static int check_runtime_class(const Place *place, const DataObject *object) {
        const ResourceList *overhead = &object->runtime.overhead.pod_fixed;

        if (overhead->cpu.milli < 0 || overhead->memory.milli < 0)
                return broken(place, "overhead", "podFixed", "must not be negative");
        return 0;
}

int class_object_parse(Decoder *decoder, const Node *node, const DecodePath *path, ObjectKind kind,
                       DataObject **ret) {
        cleanup_with(data_object_freep) DataObject *object = calloc(1, sizeof(*object));
        const Place place = { .decoder = decoder, .object = node, .path = path };
        int r;

        if (!object)
                return -ENOMEM;
        object->kind = kind;
        r = decode_object(decoder, node, object_schemas[kind], path, object);
        if (r >= 0 && object->metadata.namespace)
                r = broken(&place, "metadata", "namespace", "not allowed on this type");
        if (r < 0)
                return r;
        object->metadata.namespace = strdup("");
        if (!object->metadata.namespace)
                return -ENOMEM;
        r = kind == OBJECT_PRIORITY_CLASS ? check_priority_class(&place, object)
                                          : check_runtime_class(&place, object);
        if (r >= 0)
                *ret = TAKE_PTR(object);
        return r;
}
