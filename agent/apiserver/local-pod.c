/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps the local side of a reported pod; pod-status-writer.c reports it. */

#include "agent/apiserver/local-pod.h"

#include "agent/model/object-identity.h"
#include "common/cleanup.h"

void local_pod_init(LocalPod *local) {
        *local = (LocalPod){ .deletion_grace = -1 };
}

void local_pod_clear(LocalPod *local) {
        free(local->uid);
        free(local->name);
        free(local->reported_uid);
        local->uid = local->name = local->reported_uid = NULL;
}

static void clear_final_status(LocalPod *local) {
        local->final_pod = pod_free(local->final_pod);
        local->final_status = pod_status_unref(local->final_status);
        free(local->final_json);
        free(local->final_uid);
        local->final_json = local->final_uid = NULL;
}

void local_pod_done(LocalPod *local) {
        local_pod_clear(local);
        clear_final_status(local);
}

int local_pod_set_instance(LocalPod *local, const Pod *pod, const char *reported_uid) {
        if (object_has_uid(&pod->metadata, local->uid) && local->is_api_pod == pod_is_of_api(pod))
                return 0;
        local_pod_clear(local);
        local->uid = strdup(pod->metadata.uid);
        local->name = strdup(pod->metadata.name);
        local->reported_uid = strdup(reported_uid);
        if (!local->uid || !local->name || !local->reported_uid) {
                local_pod_clear(local);
                return -ENOMEM;
        }
        local->is_api_pod = pod_is_of_api(pod);
        local->deletion_grace = -1;
        local->is_terminated_cached = false;
        return 0;
}

const PodStatus *local_pod_status(const LocalPod *local, const PodManager *pod_manager) {
        return local->uid ? pod_manager_pod_status(pod_manager, local->uid) : NULL;
}

void local_pod_set_conditions(const LocalPod *local, const KubeObjectSummary *remote,
                              PodManager *pod_manager) {
        const Pod *pod = local->uid ? pod_manager_find_pod(pod_manager, local->uid) : NULL;
        cleanup_with(string_map_done) StringMap conditions = { 0 };

        if (pod && pod->spec.readiness_gates.n > 0 &&
            kube_object_summary_conditions(remote, &conditions) >= 0)
                pod_manager_set_external_conditions(pod_manager, local->uid, &conditions);
}

void local_pod_finish(LocalPod *local, const Pod *pod, const char *reported_uid,
                      PodManager *pod_manager) {
        clear_final_status(local);
        local->final_uid = strdup(reported_uid);
        local->final_status =
                pod_status_ref(pod_manager_pod_status(pod_manager, pod->metadata.uid));
        if (local->final_status && pod_copy(pod, &local->final_pod) < 0)
                local->final_status = pod_status_unref(local->final_status);
        local->is_api_pod = pod_is_of_api(pod);
        local_pod_clear(local);
}

int local_pod_restore_final(LocalPod *local, const char *uid, char *json) {
        clear_final_status(local);
        local->final_json = json;
        local->final_uid = strdup(uid);
        local->is_api_pod = true;
        return local->final_uid ? 0 : -ENOMEM;
}

void local_pod_delete(LocalPod *local, const char *namespace, int64_t grace,
                      PodManager *pod_manager) {
        if (!local->uid || !local->is_api_pod ||
            (local->deletion_grace >= 0 && local->deletion_grace <= grace))
                return;
        local->deletion_grace = grace;
        (void) pod_manager_delete_pod(pod_manager, namespace, local->name, grace,
                                      "the API server deleted it", NULL);
}
