/* SPDX-License-Identifier: Apache-2.0 */

/* ObjectMeta: the controller of an object, and the UID of a pod that comes from a file. */

#include "agent/model/cdi.h"
#include "agent/model/json.h"
#include "agent/model/pod.h"
#include "common/cleanup.h"
#include "common/hash.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

const char config_hash_annotation[] = "kubernetes.io/config.hash";

enum {
        UID_LENGTH = 32
};

const OwnerReference *object_controller(const ObjectMeta *metadata) {
        for (size_t i = 0; i < metadata->owner_references.n; i++)
                if (metadata->owner_references.items[i].controller)
                        return &metadata->owner_references.items[i];
        return NULL;
}

/* "apps" from "apps/v1"; "" for the core API. */
static size_t api_group_length(const char *api_version) {
        const char *slash = strchr(api_version, '/');

        return slash ? (size_t) (slash - api_version) : 0;
}

static bool is_same_api_group(const char *a, const char *b) {
        size_t length = api_group_length(a);

        return length == api_group_length(b) && strncmp(a, b, length) == 0;
}

const OwnerReference *object_controlling_daemonset(const ObjectMeta *metadata) {
        const OwnerReference *owner = object_controller(metadata);

        return owner && streq_ptr(owner->kind, "DaemonSet") &&
                               is_same_api_group(strna(owner->api_version), "apps/v1")
                       ? owner
                       : NULL;
}

bool objects_have_same_controller(const ObjectMeta *a, const ObjectMeta *b) {
        const OwnerReference *owner_a = object_controller(a), *owner_b = object_controller(b);

        return owner_a && owner_b && a->source == b->source &&
               streq_ptr(owner_a->uid, owner_b->uid) && streq_ptr(owner_a->kind, owner_b->kind) &&
               is_same_api_group(strna(owner_a->api_version), strna(owner_b->api_version)) &&
               streq_ptr(a->namespace, b->namespace);
}

static int hash_name_and_spec(const Pod *pod, Sha256 *hash) {
        const char *parts[] = { pod->spec.node_name, pod->metadata.namespace, pod->metadata.name };
        cleanup_free char *json = pod_spec_to_json(&pod->spec);

        if (!json)
                return -ENOMEM;
        for (size_t i = 0; i < N_ELEMENTS(parts); i++)
                sha256_update(hash, parts[i], strlen(parts[i]) + 1);
        sha256_update(hash, json, strlen(json));
        return 0;
}

/* The set of a container's CDI devices cannot change while it runs. */
static void hash_cdi_annotations(const Pod *pod, Sha256 *hash) {
        const StringMap *annotations = &pod->metadata.annotations;

        for (size_t i = 0; i < annotations->n; i++) {
                const KeyValue *pair = &annotations->items[i];

                if (!is_cdi_annotation(pair->key))
                        continue;
                sha256_update(hash, pair->key, strlen(pair->key) + 1);
                sha256_update(hash, pair->value, strlen(pair->value) + 1);
        }
}

int pod_set_uid(Pod *pod) {
        cleanup_with(sha256_freep) Sha256 *hash = sha256_new();
        char hex[SHA256_HEX_SIZE];

        if (!hash || hash_name_and_spec(pod, hash) < 0)
                return -ENOMEM;
        hash_cdi_annotations(pod, hash);
        sha256_finish(hash, hex);
        free(pod->metadata.uid);
        pod->metadata.uid = strndup(hex, UID_LENGTH);
        return pod->metadata.uid ? 0 : -ENOMEM;
}

/* A map's pairs are sorted by their keys. */
static void hash_map(const StringMap *map, Sha256 *hash) {
        for (size_t i = 0; i < map->n; i++) {
                const KeyValue *pair = &map->items[i];

                if (is_agent_annotation(pair->key))
                        continue;
                sha256_update(hash, pair->key, strlen(pair->key) + 1);
                sha256_update(hash, pair->value, strlen(pair->value) + 1);
        }
        sha256_update(hash, "", 1);
}

int pod_set_config_hash(Pod *pod) {
        cleanup_with(sha256_freep) Sha256 *hash = sha256_new();
        char hex[SHA256_HEX_SIZE];

        if (!hash || hash_name_and_spec(pod, hash) < 0)
                return -ENOMEM;
        sha256_update(hash, "", 1);
        hash_map(&pod->metadata.labels, hash);
        hash_map(&pod->metadata.annotations, hash);
        sha256_finish(hash, hex);
        hex[UID_LENGTH] = '\0';
        return string_map_set(&pod->metadata.annotations, config_hash_annotation, hex);
}

size_t pod_plain_name_length(const Pod *pod) {
        size_t n = strlen(pod->metadata.name), n_node = strlen(strna(pod->spec.node_name));
        const char *suffix = n > n_node ? pod->metadata.name + n - n_node : NULL;

        return suffix && n_node > 0 && suffix > pod->metadata.name + 1 && suffix[-1] == '-' &&
                               strcasecmp(suffix, pod->spec.node_name) == 0
                       ? n - n_node - 1
                       : n;
}

bool is_agent_annotation(const char *key) {
        return strncmp(key, "kubernetes.io/config.", strlen("kubernetes.io/config.")) == 0;
}
