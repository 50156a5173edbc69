/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/model/references.h"

#include "agent/model/containers.h"

#include <errno.h>
#include <stdlib.h>

typedef struct ReferenceWalk {
        visit_reference_t visit;
        const ObjectMeta *pod;
        void *userdata;
        int result;
} ReferenceWalk;

static void visit_reference(ReferenceWalk *walk, ObjectKind kind, const char *name) {
        const ObjectKey key = object_key_referred(walk->pod, kind, name);

        if (walk->result >= 0 && name && name[0])
                walk->result = walk->visit(&key, walk->userdata);
}

static void visit_env_references(ReferenceWalk *walk, const EnvVarSource *source) {
        if (source && source->config_map_key_ref)
                visit_reference(walk, OBJECT_CONFIG_MAP, source->config_map_key_ref->name);
        if (source && source->secret_key_ref)
                visit_reference(walk, OBJECT_SECRET, source->secret_key_ref->name);
}

static void visit_container_references(ReferenceWalk *walk, const Container *container) {
        for (size_t i = 0; i < container->env_from.n; i++) {
                const EnvFromSource *source = &container->env_from.items[i];

                if (source->config_map_ref)
                        visit_reference(walk, OBJECT_CONFIG_MAP, source->config_map_ref->name);
                if (source->secret_ref)
                        visit_reference(walk, OBJECT_SECRET, source->secret_ref->name);
        }
        for (size_t i = 0; i < container->env.n; i++)
                visit_env_references(walk, container->env.items[i].value_from);
}

static void visit_object_sources(ReferenceWalk *walk, const ObjectVolumeSource *config_map,
                                 const ObjectVolumeSource *secret) {
        if (config_map)
                visit_reference(walk, OBJECT_CONFIG_MAP, config_map->name);
        if (secret)
                visit_reference(walk, OBJECT_SECRET, secret->name);
}

static void visit_volume_references(ReferenceWalk *walk, const Volume *volume) {
        size_t n = volume->projected ? volume->projected->sources.n : 0;

        visit_object_sources(walk, volume->config_map, volume->secret);
        if (volume->csi)
                visit_reference(walk, OBJECT_CSI_DRIVER, volume->csi->driver);
        if (volume->csi && volume->csi->publish_secret)
                visit_reference(walk, OBJECT_SECRET, volume->csi->publish_secret->name);
        for (size_t i = 0; i < n; i++)
                visit_object_sources(walk, volume->projected->sources.items[i].config_map,
                                     volume->projected->sources.items[i].secret);
}

static void visit_claim_reference(ReferenceWalk *walk, const Pod *pod, const Volume *volume) {
        char *name;

        if (!volume->persistent_volume_claim && !volume->ephemeral)
                return;
        name = volume_claim_name(pod, volume);
        if (name)
                visit_reference(walk, OBJECT_VOLUME_CLAIM, name);
        else
                walk->result = -ENOMEM;
        free(name);
}

int pod_foreach_reference(const Pod *pod, visit_reference_t visit, void *userdata) {
        ReferenceWalk walk = { visit, &pod->metadata, userdata, 0 };
        const Container *container;

        pod_foreach_container(container, &pod->spec) {
                visit_container_references(&walk, container);
        }
        for (size_t i = 0; i < pod->spec.volumes.n; i++) {
                visit_volume_references(&walk, &pod->spec.volumes.items[i]);
                visit_claim_reference(&walk, pod, &pod->spec.volumes.items[i]);
        }
        for (size_t i = 0; i < pod->spec.image_pull_secrets.n; i++)
                visit_reference(&walk, OBJECT_SECRET, pod->spec.image_pull_secrets.items[i].name);
        visit_reference(&walk, OBJECT_RUNTIME_CLASS, pod->spec.runtime_class_name);
        return walk.result;
}
