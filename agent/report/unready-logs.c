/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/report/unready-logs.h"

#include "common/cleanup.h"
#include "common/json-text.h"

enum {
        LOGS_MAX = 256
};

static void add_unready_containers(json_t *list, const Pod *pod,
                                   const ContainerStatusList *containers) {
        for (size_t i = 0; i < containers->n && json_array_size(list) < LOGS_MAX; i++)
                if (!containers->items[i].ready)
                        (void) json_array_append_new(
                                list, json_pack("{s:s, s:s, s:s, s:s}", "namespace",
                                                strna(pod->metadata.namespace), "name",
                                                strna(pod->metadata.name), "uid",
                                                strna(pod->metadata.uid), "container",
                                                strna(containers->items[i].name)));
}

static int add_unready_pod(const Pod *pod, const PodStatus *status, void *userdata) {
        if (status->phase == POD_SUCCEEDED || status->conditions[CONDITION_READY].is_true)
                return 0;
        add_unready_containers(userdata, pod, &status->init_containers);
        add_unready_containers(userdata, pod, &status->containers);
        return 0;
}

char *unready_logs_list(const PodManager *pods) {
        cleanup_json json_t *list = json_array();

        (void) pod_manager_for_each_pod(pods, add_unready_pod, list);
        return list ? json_to_text(list, JSON_COMPACT) : NULL;
}
