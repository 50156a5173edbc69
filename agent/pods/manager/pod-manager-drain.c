/* SPDX-License-Identifier: Apache-2.0 */
/* Draining: all pods stop, and the agent exits. */

#include "agent/pods/manager/pod-manager-private.h"
#include "common/log.h"

#include <errno.h>

void pod_manager_set_draining(PodManager *manager) {
        manager->context.is_draining = true;
}

static void explain_drain_failures(const PodManager *manager) {
        for (const PodEntry *entry = manager->entries; entry; entry = entry->next_entry)
                log_error("Cannot remove the remains of pod '%s', the next agent tries again: %s",
                          entry->description, pod_worker_removal_error(entry->worker));
}

int pod_manager_drained(const PodManager *manager) {
        if (!orphaned_pods_is_empty(manager->orphans))
                return 0;
        if (!manager->entries)
                return 1;
        for (const PodEntry *entry = manager->entries; entry; entry = entry->next_entry)
                if (!entry->worker || !pod_worker_removal_error(entry->worker))
                        return 0;
        explain_drain_failures(manager);
        return -EBUSY;
}
