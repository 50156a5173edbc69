/* SPDX-License-Identifier: Apache-2.0 */
/* ConfigMaps, Secrets and classes came, went or changed, or the pod's own labels did: what waits
 * for them goes on, and volumes follow. */

#include "agent/pods/pod-worker-private.h"
#include "common/cleanup.h"
#include "common/log.h"

static bool pod_has_data_volume(const Pod *pod) {
        for (size_t i = 0; i < pod->spec.volumes.n; i++)
                if (volume_is_data(&pod->spec.volumes.items[i]))
                        return true;
        return false;
}

/* Said once for each sentence: the next change of any manifest asks again. */
static void set_volume_error(PodWorker *worker, const char *message) {
        if (streq_ptr(worker->volume_error, message))
                return;
        free(worker->volume_error);
        worker->volume_error = message ? strdup(message) : NULL;
        if (message)
                log_warning("Pod '%s': %s; the volume stays as it was", worker->description,
                            message);
}

bool pod_worker_is_set_up(const PodWorker *worker) {
        PodWorkerState state =
                worker->state == WORKER_RETRY_WAIT ? worker->retry_state : worker->state;

        return state == WORKER_SYNCING || state == WORKER_SETTING_UP || state == WORKER_ATTACHING ||
               state == WORKER_READY;
}

void pod_worker_update_volumes(PodWorker *worker) {
        cleanup_error Error error = ERROR_NULL;
        int r;

        if (!pod_worker_should_run(worker) || !pod_worker_is_set_up(worker) ||
            !pod_has_data_volume(worker->pod))
                return;
        r = bundle_update_volumes(worker->context->bundle, worker->pod, &error);
        set_volume_error(worker, r < 0 ? error_message(&error, r) : NULL);
}

void pod_worker_on_objects_changed(PodWorker *worker) {
        bool may_begin =
                worker->state == WORKER_RETRY_WAIT && worker->retry_state == WORKER_NO_SANDBOX;

        pod_worker_update_volumes(worker);
        if (may_begin &&
            (pod_has_data_volume(worker->pod) || worker->pod->spec.priority_class_name ||
             worker->pod->spec.runtime_class_name)) {
                pod_worker_set_state(worker, WORKER_NO_SANDBOX);
                pod_worker_mark_dirty(worker);
        }
        for (size_t i = 0; i < worker->n_containers; i++)
                container_machine_retry_references(
                        worker->containers[i].machine,
                        pod_worker_may_start_container(&worker->containers[i]));
}
