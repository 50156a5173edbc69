/* SPDX-License-Identifier: Apache-2.0 */
/* What the node keeps from its pods (systemReserved, kubeReserved): in the resources that it admits
 * pods by, and in control groups. */

#include "agent/bundle/cgroups.h"
#include "agent/wiring.h"
#include "common/cleanup.h"
#include "common/log.h"

void agent_reserve_resources(Agent *agent) {
        const Config *config = &agent->config;
        NodeResources capacity =
                machine_capacity(&agent->node, agent->bundle_config.storage_capacity,
                                 config_max_pods(config, agent->node.n_cpus));
        bool is_reserved = config->system_reserved.n + config->kube_reserved.n > 0;

        agent->allocatable =
                node_allocatable(&capacity, &config->system, &config->kube, &config->eviction);
        if (!is_reserved || !config_enforces(config, "pods"))
                return;
        agent->bundle_config.reserved = (NodeReservation){
                .cpu_milli = config->system.cpu_milli + config->kube.cpu_milli,
                .memory = config->system.memory + config->kube.memory,
                .pids = config->system.pids + config->kube.pids,
        };
}

static void report_start_event(Agent *agent, PodEventKind kind, const char *reason,
                               const char *message) {
        agent_on_event(&(PodEvent){ .kind = kind, .reason = reason, .message = message }, agent);
}

static void report_enforcement(Agent *agent, const char *what, const char *group, int r,
                               Error *error) {
        cleanup_free char *message = NULL;
        int n;

        if (r < 0)
                log_warning("Cannot enforce %s: %s", what, error_message(error, r));
        n = r < 0 ? asprintf(&message, "Cannot enforce %s: %s", what, error_message(error, r))
                  : asprintf(&message, "Updated limits on %s cgroup %s", what, group);
        if (n < 0) {
                message = NULL;
                return;
        }
        report_start_event(agent, r < 0 ? POD_EVENT_WARNING : POD_EVENT_NORMAL,
                           r < 0 ? "FailedNodeAllocatableEnforcement" : "NodeAllocatableEnforced",
                           message);
}

/* The groups that the reservations are for. */
static void enforce_reservations(Agent *agent) {
        const Config *config = &agent->config;
        const struct {
                const char *what, *compressible;
                const char *words;
                const char *group;
                const NodeReservation *reserved;
        } groups[] = {
                { "system-reserved", "system-reserved-compressible", "system reserved",
                  config->system_reserved_cgroup, &config->system },
                { "kube-reserved", "kube-reserved-compressible", "kube reserved",
                  config->kube_reserved_cgroup, &config->kube },
        };

        for (size_t i = 0; i < N_ELEMENTS(groups); i++) {
                bool is_whole = config_enforces(config, groups[i].what);
                cleanup_error Error error = ERROR_NULL;
                int r;

                if (!is_whole && !config_enforces(config, groups[i].compressible))
                        continue;
                r = cgroup_enforce_reservation(groups[i].group, groups[i].reserved, !is_whole,
                                               &error);
                report_enforcement(agent, groups[i].words, groups[i].group, r, &error);
        }
}

static void report_start_events(Agent *agent) {
        report_start_event(agent, POD_EVENT_NORMAL, "Starting", "Starting kubelet.");
        if (agent->bundle_config.storage_capacity <= 0)
                report_start_event(agent, POD_EVENT_WARNING, "InvalidDiskCapacity",
                                   "invalid capacity 0 on image filesystem");
        if (config_enforces(&agent->config, "pods"))
                report_start_event(agent, POD_EVENT_NORMAL, "NodeAllocatableEnforced",
                                   "Updated Node Allocatable limit across pods");
}

void agent_enforce_reservations(Agent *agent) {
        if (agent->apiserver)
                report_start_events(agent);
        enforce_reservations(agent);
}
