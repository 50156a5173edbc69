/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/node/reserved-resources.h"

#include "agent/bundle/cgroups.h"
#include "common/cleanup.h"
#include "common/log.h"
#include "common/text.h"

#include <stdio.h>

NodeResources find_allocatable_resources(const Config *config, const MachineInfo *machine,
                                         int64_t storage) {
        NodeResources capacity =
                machine_capacity(machine, storage, config_max_pods(config, machine->n_cpus));

        return node_allocatable(&capacity, &config->system, &config->kube, &config->eviction);
}

NodeReservation find_enforced_reservation(const Config *config) {
        if (config->system_reserved.n + config->kube_reserved.n == 0 ||
            !config_enforces(config, "pods"))
                return (NodeReservation){ 0 };
        return (NodeReservation){
                .cpu_milli = config->system.cpu_milli + config->kube.cpu_milli,
                .memory = config->system.memory + config->kube.memory,
                .pids = config->system.pids + config->kube.pids,
        };
}

static void report_enforcement(const char *what, const char *group, int r, Error *error,
                               reserved_resources_event_t on_event, void *userdata) {
        cleanup_free char *message = NULL;

        if (r < 0)
                log_warning("Cannot enforce %s: %s", what, error_message(error, r));
        message = r < 0 ? text_format("Cannot enforce %s: %s", what, error_message(error, r))
                        : text_format("Updated limits on %s cgroup %s", what, group);
        if (!message)
                return;
        on_event(&(PodEvent){ .kind = r < 0 ? POD_EVENT_WARNING : POD_EVENT_NORMAL,
                              .reason = r < 0 ? "FailedNodeAllocatableEnforcement"
                                              : "NodeAllocatableEnforced",
                              .message = message },
                 userdata);
}

void enforce_reservations(const Config *config, reserved_resources_event_t on_event,
                          void *userdata) {
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
                report_enforcement(groups[i].words, groups[i].group, r, &error, on_event, userdata);
        }
}

void report_settings_without_effect(const Config *config, reserved_resources_event_t on_event,
                                    void *userdata) {
        cleanup_free char *message = NULL;

        if (!config->without_effect)
                return;
        message = text_format("Settings of the configuration have no effect on this node: %s",
                              config->without_effect);
        if (message)
                on_event(&(PodEvent){ .kind = POD_EVENT_WARNING,
                                      .reason = "SettingsWithoutEffect",
                                      .message = message },
                         userdata);
}

void report_node_start(const Config *config, int64_t storage, reserved_resources_event_t on_event,
                       void *userdata) {
        on_event(&(PodEvent){ .kind = POD_EVENT_NORMAL,
                              .reason = "Starting",
                              .message = "Starting kubelet." },
                 userdata);
        if (storage <= 0)
                on_event(&(PodEvent){ .kind = POD_EVENT_WARNING,
                                      .reason = "InvalidDiskCapacity",
                                      .message = "invalid capacity 0 on image filesystem" },
                         userdata);
        if (config_enforces(config, "pods"))
                on_event(&(PodEvent){ .kind = POD_EVENT_NORMAL,
                                      .reason = "NodeAllocatableEnforced",
                                      .message = "Updated Node Allocatable limit across pods" },
                         userdata);
}
