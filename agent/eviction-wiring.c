/* SPDX-License-Identifier: Apache-2.0 */
/* Connects the eviction manager, which watches what the node has left, with the modules that free
 * it: images are garbage collected, pods are evicted. The node's conditions become its taints; pods
 * that were not admitted for them are checked again. */

#include "agent/bundle/cgroups.h"
#include "agent/wiring.h"
#include "common/cleanup.h"
#include "common/log.h"
#include "common/message-ids.h"

static bool is_pod_manager_active(void *userdata) {
        const Agent *agent = userdata;

        return pod_manager_has_active_pods(agent->pod_manager);
}

static bool is_reclaim_in_progress(void *userdata) {
        const Agent *agent = userdata;

        return pod_manager_is_evicting(agent->pod_manager) ||
               image_store_is_removing(agent->images);
}

static bool reclaim_image_space(void *userdata) {
        const Agent *agent = userdata;

        return image_store_prune(agent->images) > 0;
}

static bool evict_next_pod(const ResourceShortage *shortage, void *userdata) {
        const Agent *agent = userdata;

        return pod_manager_evict_pod(agent->pod_manager, shortage);
}

static void on_node_conditions_changed(void *userdata) {
        Agent *agent = userdata;
        const NodeConditions *conditions = eviction_manager_conditions(agent->eviction_manager);
        int r = node_labels_set_conditions(&agent->node_labels, conditions->set);

        if (r < 0)
                (void) log_error_errno(r, "Cannot update the taints of the node's conditions");
        pod_manager_on_node_changed(agent->pod_manager);
        if (agent->apiserver)
                apiserver_node_changed(agent->apiserver);
        agent_request_recompute(agent);
}

static void on_resource_shortage(const ResourceShortage *shortage, void *userdata) {
        const EvictionSignalInfo *info = &eviction_signals[shortage->signal];
        cleanup_free char *message = NULL;

        log_set_message_id(MESSAGE_NODE_PRESSURE);
        log_warning("The node is short of %s, reclaiming %s", info->name, info->resource);
        if (asprintf(&message, "Attempting to reclaim %s", info->resource) < 0) {
                message = NULL;
                return;
        }
        agent_on_event(&(PodEvent){ .kind = POD_EVENT_WARNING,
                                    .reason = "EvictionThresholdMet",
                                    .message = message },
                       userdata);
}

int build_eviction_manager(Agent *agent) {
        static const EvictionManagerCallbacks callbacks = {
                .has_active_pods = is_pod_manager_active,
                .is_reclaiming = is_reclaim_in_progress,
                .remove_images = reclaim_image_space,
                .evict = evict_next_pod,
                .on_conditions = on_node_conditions_changed,
                .on_shortage = on_resource_shortage,
        };

        /* The cgroup of all pods is the parent of those of Guaranteed pods. */
        agent->pods_group = cgroup_of_qos_class(&agent->bundle_config, QOS_GUARANTEED);
        if (!agent->pods_group)
                return -ENOMEM;
        return eviction_manager_new(
                &(EvictionManagerConfig){
                        .event = agent->event,
                        .policy = &agent->config.eviction,
                        .paths = { .pods_group = agent->pods_group,
                                   .state_dir = agent->state_dir,
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
