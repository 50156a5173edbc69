/* SPDX-License-Identifier: Apache-2.0 */

/* ObjectMeta: the controller of an object, and the UID of a pod that comes from a file. */

#include "agent/model/json.h"
#include "agent/model/pod.h"
#include "common/cleanup.h"
#include "common/hash.h"

#include <errno.h>
#include <stdlib.h>

enum {
        UID_LENGTH = 32
};

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
