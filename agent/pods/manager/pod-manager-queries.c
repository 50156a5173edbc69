/* SPDX-License-Identifier: Apache-2.0 */

/* Queries about all pods: their status, their sources. */

#include "agent/model/json.h"
#include "agent/model/object-identity.h"
#include "agent/model/qos.h"
#include "agent/pods/manager/pod-manager-private.h"
#include "common/cleanup.h"

/* The entry's pod, or the next one if it cannot be started, for example because its record cannot
 * be written. NULL: neither. */
static const Pod *listed_pod_of_entry(const PodEntry *entry) {
        return entry->worker        ? pod_worker_pod(entry->worker)
               : entry->start_error ? entry->next
                                    : NULL;
}

/* Compares "<namespace>/<name>/<uid>" of the entry's pod with another pod's. */
static bool is_entry_after(const PodEntry *entry, const Pod *pod, const char *after) {
        size_t length = strlen(entry->key);
        int order = strncmp(entry->key, after, length);

        return order > 0 || (order == 0 && strcmp(pod->metadata.uid, after + length) > 0);
}

static const PodStatus *listed_status_of_entry(const PodEntry *entry) {
        static PodStatus not_started = { .n_refs = 1, .phase = POD_PENDING };

        if (entry->worker)
                return pod_worker_status(entry->worker);
        return entry->start_status ? entry->start_status : &not_started;
}

bool pod_manager_next_pod(const PodManager *manager, const char *after, const Pod **ret_pod,
                          const PodStatus **ret_status) {
        for (const PodEntry *entry = manager->entries; entry; entry = entry->next_entry) {
                const Pod *pod = listed_pod_of_entry(entry);

                if (!pod || (after && !is_entry_after(entry, pod, after)))
                        continue;
                *ret_status = listed_status_of_entry(entry);
                *ret_pod = pod;
                return true;
        }
        return false;
}

int pod_manager_for_each_pod(const PodManager *manager,
                             int (*each)(const Pod *, const PodStatus *, void *), void *userdata) {
        for (const PodEntry *entry = manager->entries; entry; entry = entry->next_entry) {
                int r = entry->worker ? each(pod_worker_pod(entry->worker),
                                             pod_worker_status(entry->worker), userdata)
                                      : 0;

                if (r < 0)
                        return r;
        }
        return 0;
}

static const PodEntry *find_entry_of_pod(const PodManager *manager, const char *uid) {
        for (const PodEntry *entry = manager->entries; entry; entry = entry->next_entry)
                if (entry->worker && object_has_uid(&pod_worker_pod(entry->worker)->metadata, uid))
                        return entry;
        return NULL;
}

static PodWorker *find_pod_worker(const PodManager *manager, const char *uid) {
        const PodEntry *entry = find_entry_of_pod(manager, uid);

        return entry ? entry->worker : NULL;
}

void pod_manager_set_external_conditions(PodManager *manager, const char *uid,
                                         const StringMap *conditions) {
        PodWorker *worker = find_pod_worker(manager, uid);

        if (worker)
                pod_worker_set_external_conditions(worker, conditions);
}

int pod_manager_network_usage(const PodManager *manager, const char *uid,
                              NetworkInterfaceUsage *ret) {
        const PodWorker *worker = find_pod_worker(manager, uid);

        return worker ? pod_worker_network_usage(worker, ret) : 0;
}

void pod_manager_request_usage(PodManager *manager) {
        for (PodEntry *entry = manager->entries; entry; entry = entry->next_entry) {
                Sandbox *sandbox = entry->worker ? pod_worker_sandbox(entry->worker) : NULL;

                if (sandbox)
                        (void) sandbox_request_usage(sandbox); /* a failure leaves it out of the
                                                                * metrics */
        }
}

const ProcessUsage *pod_manager_container_usage(const PodManager *manager, const char *uid,
                                                const char *id, uint64_t *ret_taken_at) {
        const PodWorker *worker = find_pod_worker(manager, uid);
        const Sandbox *sandbox = worker ? pod_worker_sandbox(worker) : NULL;

        return sandbox ? sandbox_container_usage(sandbox, id, ret_taken_at) : NULL;
}

const Pod *pod_manager_find_pod(const PodManager *manager, const char *uid) {
        const PodWorker *worker = find_pod_worker(manager, uid);

        return worker ? pod_worker_pod(worker) : NULL;
}

bool pod_manager_awaits_edit(const PodManager *manager, const char *uid) {
        const PodWorker *worker = find_pod_worker(manager, uid);

        return worker && pod_worker_awaits_edit(worker);
}

const PodStatus *pod_manager_pod_status(const PodManager *manager, const char *uid) {
        const PodWorker *worker = find_pod_worker(manager, uid);

        return worker ? pod_worker_status(worker) : NULL;
}

const PodSource *pod_manager_pod_source(const PodManager *manager, const char *uid) {
        const PodEntry *entry = find_entry_of_pod(manager, uid);

        return entry ? &entry->source : NULL;
}

char *pod_manager_print_pod(const PodManager *manager, const Pod *pod, const PodStatus *status) {
        const PodSource *source = pod_manager_pod_source(manager, pod->metadata.uid);
        cleanup_free char *text = NULL;

        for (const PodEntry *entry = manager->entries; entry && !source; entry = entry->next_entry)
                source = entry->next == pod ? &entry->next_source : NULL;
        text = source ? print_pod_source(source, pod) : NULL;

        return pod_to_json_from(pod, status, strna(text));
}
