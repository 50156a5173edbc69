/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/node/bundle-config.h"

#include "agent/bundle/huge-pages.h"
#include "agent/bundle/swap.h"
#include "agent/node/reserved-resources.h"
#include "common/app-armor.h"
#include "common/cgroup.h"
#include "common/selinux.h"

BundleConfig make_bundle_config(const Config *config, const MachineInfo *machine,
                                const AgentPaths *paths, bool has_slices) {
        int64_t storage = machine_storage_capacity(paths->state_dir);

        return (BundleConfig){
                .run_dir = paths->run_dir,
                .state_dir = paths->state_dir,
                .log_dir = paths->log_dir,
                .shim_path = paths->shim,
                .hostname = machine->hostname,
                .cluster_domain = config->cluster_domain,
                .cluster_dns = config->cluster_dns,
                .resolv_conf = config->resolv_conf,
                .cgroup_root = config->cgroup_root,
                .has_slices = has_slices,
                .memory_capacity = machine->memory_capacity,
                .swap_capacity = machine->swap_capacity,
                .has_limited_swap = config->memory_swap.swap_behavior == SWAP_LIMITED,
                .can_limit_swap = swap_is_limitable(cgroup_version()),
                .has_single_oom_kill = config->single_process_oom_kill.value,
                .storage_capacity = storage,
                .allocatable = find_allocatable_resources(config, machine, storage),
                .pod_pids_limit = config->pod_pids_limit.is_set ? config->pod_pids_limit.value : -1,
                .oom_score_adj_min = machine->oom_score_adj_min,
                .cpu_capacity_milli = (int64_t) machine->n_cpus * 1000,
                .host_ips = { machine->address, machine->other_address },
                .allowed_unsafe_sysctls = config->allowed_unsafe_sysctls,
                .missing_capabilities = machine->missing_capabilities,
                .thermal_throttles = machine->thermal_throttles,
                .huge_pages = huge_pages_limitable(HUGE_PAGES_DIRECTORY),
                .has_x32 = machine->has_x32,
                .lacks_memory_controller = !cgroup_has_controller("memory"),
                .lacks_pids_controller = !cgroup_has_controller("pids"),
                .has_app_armor = machine->has_app_armor,
                .app_armor_default = machine->app_armor_default,
                .app_armor_profiles = app_armor_profiles_path,
                .has_se_linux = machine->has_se_linux,
                .has_selinux_labels = machine->has_selinux_labels,
                .labels = machine->labels.process ? &machine->labels : NULL,
                .check_selinux_label = selinux_check_label,
                .reserved = find_enforced_reservation(config),
                .refuses_api_cdi = !config->mainstay.cdi_for_api_pods,
                .has_journal = config->mainstay.journal_container_logs,
        };
}
