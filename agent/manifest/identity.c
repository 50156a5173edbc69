/* SPDX-License-Identifier: Apache-2.0 */

/* The kubelet hashes the path of the file into a static pod's UID, so that renaming a file restarts
 * the pod. We hash what the pod is: where it runs, its name, its spec. Labels and annotations are
 * left out, for they can change without a restart. */

#include "agent/manifest/rules.h"
#include "agent/model/json.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/hash.h"

#include <ctype.h>

enum {
        UID_LENGTH = 32
};

/* Keeps the map sorted; replaces what is there. 0 or -ENOMEM. */
static int string_map_set(StringMap *map, const char *key, const char *value) {
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

static int set_names(Pod *pod, const char *node_name) {
        char *name;

        if (asprintf(&name, "%s-%s", pod->metadata.name, node_name) < 0)
                return -ENOMEM;
        for (char *p = name + strlen(pod->metadata.name); *p; p++)
                *p = (char) tolower((unsigned char) *p);
        free(pod->metadata.name);
        pod->metadata.name = name;

        name = strdup(node_name);
        if (!name)
                return -ENOMEM;
        free(pod->spec.node_name);
        pod->spec.node_name = name;
        return 0;
}

static int set_uid(Pod *pod) {
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

static int set_annotations(Pod *pod) {
        char seen[RFC3339_SIZE];
        const struct {
                const char *key;
                const char *value;
        } annotations[] = {
                { "kubernetes.io/config.hash", pod->metadata.uid },
                { "kubernetes.io/config.seen", format_rfc3339_nano(seen, now_realtime_usec()) },
                { "kubernetes.io/config.source", "file" },
        };

        for (size_t i = 0; i < N_ELEMENTS(annotations); i++) {
                int r = string_map_set(&pod->metadata.annotations, annotations[i].key,
                                       annotations[i].value);
                if (r < 0)
                        return r;
        }
        return 0;
}

int pod_set_identity(Pod *pod, const char *node_name) {
        int r;

        r = set_names(pod, node_name);
        if (r >= 0)
                r = set_uid(pod);
        if (r >= 0)
                r = set_annotations(pod);
        return r;
}
