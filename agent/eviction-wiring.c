/* SPDX-License-Identifier: Apache-2.0 */
/* Connects eviction/ with the modules that free resources: image/ removes images, pods/ fails pods.
 * The node's conditions become taints; when they end, rejected pods are admitted. */

#include "agent/bundle/cgroups.h"
#include "agent/wiring.h"
#include "common/log.h"

#include <errno.h>

static bool has_active_pods(void *userdata) {
        const Agent *agent = userdata;

        return pod_manager_has_active_pods(agent->pod_manager);
}

static bool is_reclaim_in_progress(bool of_images, void *userdata) {
        const Agent *agent = userdata;

        return pod_evictor_is_busy(agent->pod_evictor, of_images) ||
               (of_images && image_store_is_removing(agent->images));
}

static bool reclaim_image_space(void *userdata) {
        const Agent *agent = userdata;

        return image_store_prune(agent->images) > 0 && image_store_is_removing(agent->images);
}

static bool evict_next_pod(const ResourceShortage *shortage, void *userdata) {
        const Agent *agent = userdata;

        return pod_evictor_evict(agent->pod_evictor, shortage);
}

static int list_candidates_for_evictor(EvictionCandidate **ret, size_t *ret_n, void *userdata) {
        const Agent *agent = userdata;

        return pod_manager_list_eviction_candidates(agent->pod_manager, ret, ret_n);
}

static bool fail_evicted_pod(const char *uid, NodeCondition condition, const char *message,
                             int64_t max_grace_seconds, uint64_t *ret_grace_usec, void *userdata) {
        const Agent *agent = userdata;

        return pod_manager_evict_pod(agent->pod_manager, uid, condition, message, max_grace_seconds,
                                     ret_grace_usec);
}

static bool is_evicted_pod_stopping(const char *uid, void *userdata) {
        const Agent *agent = userdata;

        return pod_manager_is_stopping_failed(agent->pod_manager, uid);
}

static void on_node_conditions_changed(void *userdata) {
        Agent *agent = userdata;
        const NodeConditions *conditions = eviction_manager_conditions(agent->eviction_manager);
        int r = node_labels_set_conditions(&agent->node_labels,
                                           conditions->set & NODE_PRESSURE_CONDITIONS);

        if (r < 0)
                (void) log_error_errno(r, "Cannot update the taints of the node's conditions");
        pod_manager_on_node_changed(agent->pod_manager);
        agent_report_node_change(agent);
        agent_request_recompute(agent);
}

static int build_pod_evictor(Agent *agent) {
        static const PodEvictorCallbacks callbacks = {
                .list_candidates = list_candidates_for_evictor,
                .fail_pod = fail_evicted_pod,
                .is_stopping = is_evicted_pod_stopping,
        };

        return pod_evictor_new(&(PodEvictorConfig){ .event = agent->event,
                                                    .shim_path = agent->paths.shim,
                                                    .callbacks = &callbacks,
                                                    .userdata = agent },
                               &agent->pod_evictor);
}

int build_eviction_manager(Agent *agent) {
        static const EvictionManagerCallbacks callbacks = {
                .has_active_pods = has_active_pods,
                .is_reclaiming = is_reclaim_in_progress,
                .remove_images = reclaim_image_space,
                .evict = evict_next_pod,
                .on_conditions = on_node_conditions_changed,
                .on_event = agent_on_event,
        };

        int r = build_pod_evictor(agent);

        if (r < 0)
                return r;
        /* The cgroup of Guaranteed pods is the parent of all pods' cgroups. */
        agent->pods_group = cgroup_of_qos_class(&agent->bundle_config, QOS_GUARANTEED);
        if (!agent->pods_group)
                return -ENOMEM;
        return eviction_manager_new(
                &(EvictionManagerConfig){
                        .event = agent->event,
                        .policy = &agent->config.eviction,
                        .paths = { .pods_group = agent->pods_group,
                                   .state_dir = agent->paths.state_dir,
                                   .images_dir = image_store_path(agent->images) },
                        .callbacks = &callbacks,
                        .userdata = agent },
                &agent->eviction_manager);
}

void restore_eviction_conditions(Agent *agent) {
        for (NodeCondition c = 0; c < N_NODE_CONDITIONS; c++) {
                uint64_t evicted_at = pod_manager_last_evicted_at(agent->pod_manager, c);

                if (evicted_at > 0)
                        eviction_manager_restore_condition(agent->eviction_manager, c, evicted_at);
        }
}
