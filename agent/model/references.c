/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/model/references.h"

#include "agent/model/containers.h"

typedef struct Telling {
        reference_t each;
        const char *namespace;
        void *userdata;
        int result;
} Telling;

static void tell(Telling *telling, ObjectKind kind, const char *name) {
        if (telling->result >= 0 && name && name[0])
                telling->result = telling->each(
                        kind, object_kind_is_cluster_wide(kind) ? "" : telling->namespace, name,
                        telling->userdata);
}

static void tell_variable(Telling *telling, const EnvVarSource *source) {
        if (source && source->config_map_key_ref)
                tell(telling, OBJECT_CONFIG_MAP, source->config_map_key_ref->name);
        if (source && source->secret_key_ref)
                tell(telling, OBJECT_SECRET, source->secret_key_ref->name);
}

static void tell_container(Telling *telling, const Container *container) {
        for (size_t i = 0; i < container->env_from.n; i++) {
                const EnvFromSource *source = &container->env_from.items[i];

                if (source->config_map_ref)
                        tell(telling, OBJECT_CONFIG_MAP, source->config_map_ref->name);
                if (source->secret_ref)
                        tell(telling, OBJECT_SECRET, source->secret_ref->name);
        }
        for (size_t i = 0; i < container->env.n; i++)
                tell_variable(telling, container->env.items[i].value_from);
}

static void tell_sources(Telling *telling, const ObjectVolumeSource *config_map,
                         const ObjectVolumeSource *secret) {
        if (config_map)
                tell(telling, OBJECT_CONFIG_MAP, config_map->name);
        if (secret)
                tell(telling, OBJECT_SECRET, secret->name);
}

static void tell_volume(Telling *telling, const Volume *volume) {
        size_t n = volume->projected ? volume->projected->sources.n : 0;

        tell_sources(telling, volume->config_map, volume->secret);
        for (size_t i = 0; i < n; i++)
                tell_sources(telling, volume->projected->sources.items[i].config_map,
                             volume->projected->sources.items[i].secret);
}

int pod_each_reference(const Pod *pod, reference_t each, void *userdata) {
        Telling telling = { each, pod->metadata.namespace, userdata, 0 };
        const Container *container;

        pod_foreach_container(container, &pod->spec) {
                tell_container(&telling, container);
        }
        for (size_t i = 0; i < pod->spec.volumes.n; i++)
                tell_volume(&telling, &pod->spec.volumes.items[i]);
        for (size_t i = 0; i < pod->spec.image_pull_secrets.n; i++)
                tell(&telling, OBJECT_SECRET, pod->spec.image_pull_secrets.items[i].name);
        tell(&telling, OBJECT_RUNTIME_CLASS, pod->spec.runtime_class_name);
        return telling.result;
}
