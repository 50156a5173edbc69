/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pods/stats/system-containers.h"

#include "agent/bundle/cgroups.h"
#include "common/cgroup.h"
#include "common/cleanup.h"
#include "common/clock.h"

#include <sys/stat.h>

void system_containers_done(SystemContainers *containers) {
        for (size_t i = 0; i < containers->n; i++)
                free(containers->items[i].cgroup);
        *containers = (SystemContainers){ 0 };
}

/* The time at which the directory of the cgroup was created, if the kernel still has it, but not
 * before the boot; 0: it does not exist. */
static uint64_t cgroup_started_at(const char *cgroup) {
        cleanup_free char *directory = cgroup_file(cgroup, "memory", ".");
        uint64_t boot = now_realtime_usec() - now_boottime_usec(), made;
        struct stat st;

        if (!directory || stat(directory, &st) < 0)
                return 0;
        made = (uint64_t) st.st_mtim.tv_sec * USEC_PER_SEC + (uint64_t) st.st_mtim.tv_nsec / 1000;
        return MAX(made, boot);
}

static uint64_t earlier_start(const SystemContainers *earlier, const char *cgroup, uint64_t now) {
        for (size_t i = 0; i < earlier->n; i++)
                if (streq(earlier->items[i].cgroup, cgroup))
                        return MIN(earlier->items[i].started_at, now);
        return now;
}

/* Takes over the cgroup of 'container'; NULL: there is none. */
static void add_system_container(SystemContainers *containers, const SystemContainers *earlier,
                                 SystemContainer container) {
        uint64_t made = container.cgroup ? cgroup_started_at(container.cgroup) : 0;

        if (made == 0) {
                free(container.cgroup);
                return;
        }
        if (container.started_at == 0)
                container.started_at = earlier_start(earlier, container.cgroup, made);
        containers->items[containers->n++] = container;
}

static void add_groups_of_pods(SystemContainers *containers, const SystemContainers *earlier,
                               const BundleConfig *bundle) {
        static const struct {
                const char *name;
                QosClass qos;
        } groups[] = { { "pods", QOS_GUARANTEED },
                       { "burstable", QOS_BURSTABLE },
                       { "besteffort", QOS_BEST_EFFORT } };

        for (size_t i = 0; i < N_ELEMENTS(groups); i++)
                add_system_container(
                        containers, earlier,
                        (SystemContainer){ .name = groups[i].name,
                                           .is_qos_class = groups[i].qos != QOS_GUARANTEED,
                                           .cgroup = cgroup_of_qos_class(bundle, groups[i].qos) });
}

void system_containers_find(SystemContainers *containers, const BundleConfig *bundle,
                            const SandboxConfig *sandbox, uint64_t started_at) {
        const char *shims = sandbox_group_of_shims(sandbox);
        SystemContainers found = { 0 };
        char *own = NULL;

        (void) cgroup_of_self(&own); /* on failure it is omitted */
        if (!shims)
                shims = own;
        add_system_container(
                &found, containers,
                (SystemContainer){ .name = "runtime", .cgroup = shims ? strdup(shims) : NULL });
        add_system_container(
                &found, containers,
                (SystemContainer){ .name = "kubelet", .cgroup = own, .started_at = started_at });
        add_groups_of_pods(&found, containers, bundle);
        system_containers_done(containers);
        *containers = found;
}
