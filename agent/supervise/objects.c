/* SPDX-License-Identifier: Apache-2.0 */
/* ConfigMaps, Secrets and classes came, went or changed, or the pod's own labels did: what waits
 * for them goes on, and volumes follow. */

#include "agent/supervise/pod-internal.h"
#include "common/cleanup.h"
#include "common/log.h"

static bool has_data_volume(const Pod *pod) {
        for (size_t i = 0; i < pod->spec.volumes.n; i++)
                if (volume_is_data(&pod->spec.volumes.items[i]))
                        return true;
        return false;
}

/* Said once for each sentence: the next change of any manifest asks again. */
static void tell_stale(PodLife *life, const char *message) {
        if (streq_ptr(life->stale, message))
                return;
        free(life->stale);
        life->stale = message ? strdup(message) : NULL;
        if (message)
                log_warning("Pod '%s': %s; the volume stays as it was", life->description, message);
}

bool pod_life_is_prepared(const PodLife *life) {
        PodLifePhase phase = life->phase == PHASE_RETRY ? life->retry_phase : life->phase;

        return phase == PHASE_SYNCING || phase == PHASE_SETTING_UP || phase == PHASE_ATTACHING ||
               phase == PHASE_READY;
}

void pod_life_update_volumes(PodLife *life) {
        cleanup_error Error error = ERROR_NULL;
        int r;

        if (!pod_life_goes_on(life) || !pod_life_is_prepared(life) || !has_data_volume(life->pod))
                return;
        r = bundle_update_volumes(life->context->bundle, life->pod, &error);
        tell_stale(life, r < 0 ? error_message(&error, r) : NULL);
}

void pod_life_objects_changed(PodLife *life) {
        bool may_begin = life->phase == PHASE_RETRY && life->retry_phase == PHASE_NONE;

        pod_life_update_volumes(life);
        if (may_begin && (has_data_volume(life->pod) || life->pod->spec.priority_class_name ||
                          life->pod->spec.runtime_class_name)) {
                pod_life_set_phase(life, PHASE_NONE);
                pod_life_mark(life);
        }
        for (size_t i = 0; i < life->n_containers; i++)
                container_retry_references(life->containers[i].life,
                                           pod_life_lets_start(&life->containers[i]));
}
