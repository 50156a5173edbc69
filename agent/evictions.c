/* SPDX-License-Identifier: Apache-2.0 */
/* The doors between pressure/, which watches the node, and the rooms that make it room: image/ and
 * supervise/. The node's conditions become taints of it; whoever was kept out for them is asked
 * again. */

#include "agent/agent-private.h"
#include "agent/bundle/groups.h"
#include "agent/wishes.h"
#include "common/cleanup.h"
#include "common/log.h"
#include "common/message-ids.h"

static bool is_busy(void *userdata) {
        const Agent *agent = userdata;

        return supervisor_is_active(agent->supervisor);
}

static bool is_relieving(void *userdata) {
        const Agent *agent = userdata;

        return supervisor_is_evicting(agent->supervisor) || image_store_is_removing(agent->images);
}

static bool remove_images(void *userdata) {
        const Agent *agent = userdata;

        return image_store_prune(agent->images) > 0;
}

static bool evict(const Shortage *shortage, void *userdata) {
        const Agent *agent = userdata;

        return supervisor_evict(agent->supervisor, shortage);
}

static int on_wish(sd_event_source *source, void *userdata) {
        Agent *agent = userdata;

        if (agent->has_scanned && !agent->is_ending)
                wishes_make(agent);
        return 0;
}

static void on_conditions(void *userdata) {
        Agent *agent = userdata;
        const NodeConditions *conditions = pressure_conditions(agent->pressure);
        int r = facts_set_conditions(&agent->facts, conditions->set);

        if (r < 0)
                (void) log_error_errno(r, "Cannot say what the node is short of by its taints");
        supervisor_node_changed(agent->supervisor);
        if (agent->cluster)
                cluster_node_changed(agent->cluster);
        (void) sd_event_source_set_enabled(agent->wish_source, SD_EVENT_ONESHOT);
}

static void on_shortage(const Shortage *shortage, void *userdata) {
        const EvictionSignalInfo *info = &eviction_signals[shortage->signal];
        cleanup_free char *message = NULL;

        log_mark(MESSAGE_NODE_PRESSURE);
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

int evictions_build(Agent *agent) {
        static const PressureCallbacks callbacks = {
                .is_busy = is_busy,
                .is_relieving = is_relieving,
                .remove_images = remove_images,
                .evict = evict,
                .on_conditions = on_conditions,
                .on_shortage = on_shortage,
        };
        int r = sd_event_add_defer(agent->event, &agent->wish_source, on_wish, agent);

        if (r >= 0)
                r = sd_event_source_set_enabled(agent->wish_source, SD_EVENT_OFF);
        /* That of all pods is that of those which are guaranteed what they ask for. */
        agent->pods_group = group_of_qos(&agent->bundle_config, QOS_GUARANTEED);
        if (r >= 0 && !agent->pods_group)
                r = -ENOMEM;
        if (r < 0)
                return r;
        return pressure_new(
                &(PressureConfig){ .event = agent->event,
                                   .policy = &agent->config.eviction,
                                   .places = { .pods_group = agent->pods_group,
                                               .state_dir = agent->state_dir,
                                               .images_dir = image_store_path(agent->images) },
                                   .callbacks = &callbacks,
                                   .userdata = agent },
                &agent->pressure);
}

void evictions_take_up(Agent *agent) {
        for (NodeCondition c = 0; c < N_NODE_CONDITIONS; c++) {
                uint64_t evicted_at = supervisor_evicted_at(agent->supervisor, c);

                if (evicted_at > 0)
                        pressure_remember(agent->pressure, c, evicted_at);
        }
}
