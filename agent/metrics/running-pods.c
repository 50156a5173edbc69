/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/metrics/running-pods.h"

#include "common/cleanup.h"
#include "common/json-text.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>

struct RunningPods {
        json_t *json, *items;
};

RunningPods *running_pods_free(RunningPods *pods) {
        if (!pods)
                return NULL;
        json_decref(pods->json);
        free(pods);
        return NULL;
}

RunningPods *running_pods_new(void) {
        cleanup_with(running_pods_freep) RunningPods *pods = calloc(1, sizeof(*pods));

        if (!pods)
                return NULL;
        pods->json = json_pack("{s:s, s:s, s:{}, s:[]}", "kind", "PodList", "apiVersion", "v1",
                               "metadata", "items");
        pods->items = json_object_get(pods->json, "items");
        return pods->json ? TAKE_PTR(pods) : NULL;
}

static json_t *list_running_containers(const ContainerStatusList *init,
                                       const ContainerStatusList *containers) {
        const ContainerStatusList *const lists[] = { init, containers };
        json_t *json = json_array();

        for (size_t l = 0; l < N_ELEMENTS(lists); l++)
                for (size_t i = 0; i < lists[l]->n; i++) {
                        const ContainerStatus *status = &lists[l]->items[i];

                        if (status->state.kind == STATE_RUNNING)
                                (void) json_array_append_new(
                                        json, json_pack("{s:s, s:s*, s:{}}", "name", status->name,
                                                        "image", status->image, "resources"));
                }
        return json;
}

int running_pods_add(const Pod *pod, const PodStatus *status, void *running_pods) {
        const RunningPods *pods = running_pods;
        json_t *containers = list_running_containers(&status->init_containers, &status->containers);

        if (json_array_size(containers) == 0) {
                json_decref(containers);
                return 0;
        }
        return json_array_append_new(pods->items,
                                     json_pack("{s:{s:s, s:s, s:s, s:n}, s:{s:o}, s:{}}",
                                               "metadata", "name", pod->metadata.name, "namespace",
                                               pod->metadata.namespace, "uid", pod->metadata.uid,
                                               "creationTimestamp", "spec", "containers",
                                               containers, "status")) < 0
                       ? -ENOMEM
                       : 0;
}

char *running_pods_format(const RunningPods *pods) {
        return json_to_text(pods->json, JSON_COMPACT);
}
