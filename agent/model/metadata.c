/* SPDX-License-Identifier: Apache-2.0 */

/* What objects are called and carry: maps of strings, owners, the UID of a pod. */

#include "agent/model/json.h"
#include "agent/model/pod.h"
#include "common/cleanup.h"
#include "common/hash.h"

#include <errno.h>
#include <stdlib.h>

enum {
        UID_LENGTH = 32
};

const char *string_map_get(const StringMap *map, const char *key) {
        for (size_t i = 0; i < map->n; i++)
                if (streq(map->items[i].key, key))
                        return map->items[i].value;
        return NULL;
}

int string_map_set(StringMap *map, const char *key, const char *value) {
        cleanup_free char *new_key = strdup(key), *new_value = strdup(value);
        KeyValue *larger;
        size_t i = 0;

        if (!new_key || !new_value)
                return -ENOMEM;
        while (i < map->n && strcmp(map->items[i].key, key) < 0)
                i++;
        if (i < map->n && streq(map->items[i].key, key)) {
                free(map->items[i].value);
                map->items[i].value = TAKE_PTR(new_value);
                return 0;
        }
        larger = reallocarray(map->items, map->n + 1, sizeof(*larger));
        if (!larger)
                return -ENOMEM;
        map->items = larger;
        memmove(&larger[i + 1], &larger[i], (map->n - i) * sizeof(*larger));
        larger[i] = (KeyValue){ .key = TAKE_PTR(new_key), .value = TAKE_PTR(new_value) };
        map->n++;
        return 0;
}

const OwnerReference *object_controller(const ObjectMeta *metadata) {
        for (size_t i = 0; i < metadata->owner_references.n; i++)
                if (metadata->owner_references.items[i].controller)
                        return &metadata->owner_references.items[i];
        return NULL;
}

int pod_set_uid(Pod *pod) {
        const char *parts[] = { pod->spec.node_name, pod->metadata.namespace, pod->metadata.name };
        cleanup_free char *json = pod_spec_to_json(&pod->spec);
        cleanup_with(sha256_freep) Sha256 *hash = sha256_new();
        char hex[SHA256_HEX_SIZE];

        if (!json || !hash)
                return -ENOMEM;
        for (size_t i = 0; i < N_ELEMENTS(parts); i++)
                sha256_update(hash, parts[i], strlen(parts[i]) + 1);
        sha256_update(hash, json, strlen(json));
        sha256_finish(hash, hex);
        free(pod->metadata.uid);
        pod->metadata.uid = strndup(hex, UID_LENGTH);
        return pod->metadata.uid ? 0 : -ENOMEM;
}
