/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/model/own-values.h"

const char *own_value_as_written(const ObjectMeta *metadata, OwnKey key) {
        return string_map_get(&metadata->annotations, own_key_name(key));
}

const char *own_pod_value(const Pod *pod, OwnKey key) {
        return own_keys[key].of_any_pod || pod_is_of_manifest(pod)
                       ? own_value_as_written(&pod->metadata, key)
                       : NULL;
}

const char *own_daemonset_value(const DaemonSet *set, OwnKey key) {
        return own_value_as_written(&set->metadata, key);
}

int own_value_set(ObjectMeta *metadata, OwnKey key, const char *value) {
        return string_map_set(&metadata->annotations, own_key_name(key), value);
}

void own_values_forget_agents(ObjectMeta *metadata) {
        for (OwnKey key = 0; key < N_OWN_KEYS; key++)
                if (own_keys[key].is_agents)
                        string_map_remove(&metadata->annotations, own_key_name(key));
}
