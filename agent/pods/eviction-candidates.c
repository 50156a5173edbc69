/* SPDX-License-Identifier: Apache-2.0 */
/* One pod goes, then the node is looked at again. What pods use of memory and processes is in their
 * groups; what they have written a child has to measure first. Pods of files are evicted like all
 * others, unlike the kubelet's: on a node without a cluster there are no others. But since nobody
 * makes another pod in their place, they come back by themselves when the node has recovered. Pods
 * of an API server do not: there somebody does. */

#include "agent/pods/eviction-candidates.h"

#include "agent/bundle/cgroups.h"
#include "agent/bundle/paths.h"
#include "agent/eviction/pod-ranking.h"
#include "agent/model/containers.h"
#include "agent/model/quantity.h"
#include "agent/pods/ephemeral-storage.h"
#include "agent/pods/pod-manager-private.h"
#include "agent/pods/pod-worker-private.h"
#include "common/cgroup-usage.h"
#include "common/cgroup.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/strv.h"

#include <fcntl.h>
#include <stdlib.h>

#define EVICTION_TIMEOUT_USEC (30 * USEC_PER_SEC) /* beyond its grace, as with the kubelet */
#define MEASURE_TIMEOUT_USEC  (120 * USEC_PER_SEC)
#define NUMBER_LINE_MAX       32

/* A pod that may go. */
typedef struct EvictionCandidate {
        PodWorker *worker;
        const uint64_t *written; /* as pod_storage_paths() has them; NULL: that does not matter */
        size_t n_written;
} EvictionCandidate;

/* What the child was asked for. */
typedef struct MeasuredPod {
        char *uid;
        size_t n_paths;
} MeasuredPod;

static void forget_measured_pods(PodEvictions *evictions) {
        for (size_t i = 0; i < evictions->n_measured_pods; i++)
                free(evictions->measured_pods[i].uid);
        free(evictions->measured_pods);
        evictions->measured_pods = NULL;
        evictions->n_measured_pods = 0;
}

void pod_evictions_done(PodEvictions *evictions) {
        evictions->measure_child = child_free(evictions->measure_child);
        forget_measured_pods(evictions);
        free(evictions->evicting_uid);
        evictions->evicting_uid = NULL;
}

/* Also one that waits out a back-off has what it has written, and memory in volumes. */
static bool is_pod_active(const PodWorker *worker) {
        return worker && worker->is_desired && !pod_worker_has_failed(worker) && worker->sandbox;
}

static bool is_evictable(const PodWorker *worker) {
        return is_pod_active(worker) && worker->pod->spec.priority.value < SYSTEM_CRITICAL_PRIORITY;
}

static size_t count_pod_entries(const PodManager *s) {
        size_t n = 0;

        for (const PodEntry *entry = s->entries; entry; entry = entry->next_entry)
                n++;
        return n;
}

/* ---- what a pod uses ---- */

static int64_t memory_request_of(const Container *container) {
        return container->resources.requests.memory.value;
}

static int64_t storage_request_of(const Container *container) {
        return container->resources.requests.ephemeral_storage.value;
}

static int64_t read_pids_current(const char *group) {
        cleanup_free char *path = cgroup_file(group, "pids", "pids.current");
        cleanup_free char *text = NULL;
        cleanup_close int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -EBADF;

        if (fd < 0 || read_stream(fd, NUMBER_LINE_MAX, &text, NULL) < 0)
                return -1;
        return strtoll(text, NULL, 10);
}

static void read_cgroup_usage(const PodWorker *worker, EvictionSignal signal, PodUsage *usage) {
        const PodSpec *spec = &worker->pod->spec;
        cleanup_free char *group = cgroup_of_pod(worker->context->bundle, pod_qos_class(spec),
                                                 worker->pod->metadata.uid);
        CgroupUsage used;

        if (!group)
                return;
        if (signal == EVICTION_PIDS) {
                usage->used = read_pids_current(group);
                usage->is_known = usage->used >= 0;
                return;
        }
        usage->is_known = cgroup_usage(group, &used) >= 0;
        usage->used = usage->is_known ? (int64_t) used.working_set_bytes : 0;
        usage->requested = quantity_is_set(&spec->resources.requests.memory)
                                   ? spec->resources.requests.memory.value
                                   : pod_aggregate_amount(spec, memory_request_of);
}

static PodUsage pod_usage_of(const EvictionCandidate *candidate, EvictionSignal signal,
                             size_t index) {
        const PodSpec *spec = &candidate->worker->pod->spec;
        PodUsage usage = { .index = index, .priority = spec->priority.value };

        if (!candidate->written) {
                read_cgroup_usage(candidate->worker, signal, &usage);
                return usage;
        }
        usage.is_known = true;
        for (size_t i = 0; i < candidate->n_written; i++)
                usage.used += (int64_t) MIN(candidate->written[i], (uint64_t) INT32_MAX << 20);
        if (!eviction_signals[signal].is_counted)
                usage.requested = pod_aggregate_amount(spec, storage_request_of);
        return usage;
}

static int64_t container_working_set(const PodWorker *worker, const char *pod_group,
                                     const PodContainer *c) {
        char id[65];
        cleanup_free char *group = NULL;
        CgroupUsage used;

        container_id(worker->pod->metadata.uid, c->spec->name,
                     container_machine_attempt(c->machine), id);
        group = cgroup_of_container(pod_group, id);
        return group && cgroup_usage(group, &used) >= 0 ? (int64_t) used.working_set_bytes : 0;
}

static ContainerUsage container_usage_of(const EvictionCandidate *candidate,
                                         const ResourceShortage *shortage, const char *pod_group,
                                         size_t index) {
        const PodContainer *c = &candidate->worker->containers[index];
        const ResourceList *requests = &c->spec->resources.requests;
        ContainerUsage usage = { .name = c->spec->name };

        if (eviction_signals[shortage->signal].condition == NODE_MEMORY_PRESSURE) {
                usage.requested = requests->memory.value;
                usage.request = requests->memory.text;
                if (container_machine_has_process(c->machine))
                        usage.used = container_working_set(candidate->worker, pod_group, c);
        } else if (candidate->written && !eviction_signals[shortage->signal].is_counted) {
                usage.requested = requests->ephemeral_storage.value;
                usage.request = requests->ephemeral_storage.text;
                usage.used = (int64_t) container_storage_bytes(&candidate->worker->pod->spec,
                                                               candidate->written,
                                                               candidate->n_written, index);
        }
        return usage;
}

static char *print_eviction_message(const EvictionCandidate *candidate,
                                    const ResourceShortage *shortage) {
        const PodWorker *worker = candidate->worker;
        cleanup_free ContainerUsage *usages = calloc(worker->n_containers, sizeof(*usages));
        cleanup_free char *group =
                cgroup_of_pod(worker->context->bundle, pod_qos_class(&worker->pod->spec),
                              worker->pod->metadata.uid);

        if (!usages || !group)
                return NULL;
        for (size_t i = 0; i < worker->n_containers; i++)
                usages[i] = container_usage_of(candidate, shortage, group, i);
        return format_eviction_message(shortage, usages, worker->n_containers);
}

/* ---- one goes ---- */

static bool evict_candidate(PodManager *s, const EvictionCandidate *candidate,
                            const ResourceShortage *shortage) {
        PodWorker *worker = candidate->worker;
        cleanup_free char *message = print_eviction_message(candidate, shortage);
        cleanup_free char *uid = strdup(worker->pod->metadata.uid);
        uint64_t grace = pod_worker_grace_usec(worker);

        if (!message || !uid)
                return false;
        if (shortage->grace_seconds >= 0)
                grace = MIN(grace, (uint64_t) MAX(shortage->grace_seconds, 1) * USEC_PER_SEC);
        pod_worker_evict(worker, eviction_signals[shortage->signal].condition, message, grace);
        if (!pod_worker_has_failed(worker))
                return false;
        free(s->evictions.evicting_uid);
        s->evictions.evicting_uid = TAKE_PTR(uid);
        s->evictions.evicting_until = now_boottime_usec() + grace + EVICTION_TIMEOUT_USEC;
        s->evictions.counts[shortage->signal]++;
        return true;
}

static bool evict_first_ranked(PodManager *s, const EvictionCandidate *candidates, size_t n,
                               const ResourceShortage *shortage) {
        cleanup_free PodUsage *usages = calloc(n + 1, sizeof(*usages));

        if (!usages)
                return false;
        for (size_t i = 0; i < n; i++)
                usages[i] = pod_usage_of(&candidates[i], shortage->signal, i);
        rank_pods_for_eviction(shortage->signal, usages, n);
        for (size_t i = 0; i < n; i++)
                if (eviction_frees_enough(shortage->signal, &usages[i],
                                          shortage->quantity - shortage->available) &&
                    evict_candidate(s, &candidates[usages[i].index], shortage))
                        return true;
        return false;
}

static bool evict_by_cgroup_usage(PodManager *s, const ResourceShortage *shortage) {
        cleanup_free EvictionCandidate *candidates =
                calloc(count_pod_entries(s) + 1, sizeof(*candidates));
        size_t n = 0;

        if (!candidates)
                return false;
        for (PodEntry *entry = s->entries; entry; entry = entry->next_entry)
                if (is_evictable(entry->worker))
                        candidates[n++] = (EvictionCandidate){ .worker = entry->worker };
        return evict_first_ranked(s, candidates, n, shortage);
}

/* ---- what pods have written ---- */

static PodWorker *find_worker_by_uid(const PodManager *s, const char *uid) {
        for (const PodEntry *entry = s->entries; entry; entry = entry->next_entry)
                if (entry->worker && streq(entry->worker->pod->metadata.uid, uid))
                        return entry->worker;
        return NULL;
}

/* The pod may have gone meanwhile, or been edited. */
static bool is_still_as_measured(const PodWorker *worker, const MeasuredPod *measured) {
        cleanup_strv char **paths = NULL;

        return is_evictable(worker) &&
               pod_storage_paths(worker->context->bundle, worker->pod, &paths) >= 0 &&
               strv_length(paths) == measured->n_paths;
}

static size_t count_measured_paths(const PodEvictions *evictions) {
        size_t n = 0;

        for (size_t i = 0; i < evictions->n_measured_pods; i++)
                n += evictions->measured_pods[i].n_paths;
        return n;
}

static bool parse_measured_numbers(const char *text, uint64_t *numbers, size_t n) {
        char *end;

        for (size_t i = 0; i < n; i++) {
                numbers[i] = strtoull(text, &end, 10);
                if (end == text || *end != '\n')
                        return false;
                text = end + 1;
        }
        return true;
}

static void on_pods_measured(const ChildResult *result, void *userdata) {
        PodManager *s = userdata;
        PodEvictions *evictions = &s->evictions;
        size_t n_paths = count_measured_paths(evictions), n = 0, at = 0;
        cleanup_free uint64_t *written = calloc(n_paths + 1, sizeof(*written));
        cleanup_free EvictionCandidate *candidates =
                calloc(evictions->n_measured_pods + 1, sizeof(*candidates));

        evictions->measure_child = NULL;
        if (written && candidates && child_succeeded(result) &&
            parse_measured_numbers(result->output, written, n_paths)) {
                for (size_t i = 0; i < evictions->n_measured_pods; i++) {
                        const MeasuredPod *measured = &evictions->measured_pods[i];
                        PodWorker *worker = find_worker_by_uid(s, measured->uid);

                        if (is_still_as_measured(worker, measured))
                                candidates[n++] = (EvictionCandidate){ worker, &written[at],
                                                                       measured->n_paths };
                        at += measured->n_paths;
                }
                evictions->has_failed = !evict_first_ranked(s, candidates, n, &evictions->shortage);
        }
        forget_measured_pods(evictions);
}

static int add_measured_pod(PodManager *s, const PodWorker *worker, char ***argv) {
        MeasuredPod *measured = &s->evictions.measured_pods[s->evictions.n_measured_pods];
        cleanup_strv char **paths = NULL;
        int r = pod_storage_paths(s->context.bundle, worker->pod, &paths);

        if (r >= 0)
                r = strv_extend(argv, paths);
        if (r < 0)
                return r;
        *measured = (MeasuredPod){ strdup(worker->pod->metadata.uid), strv_length(paths) };
        if (!measured->uid)
                return -ENOMEM;
        s->evictions.n_measured_pods++;
        return 0;
}

static int measure_pods(PodManager *s, const ResourceShortage *shortage) {
        PodEvictions *evictions = &s->evictions;
        cleanup_strv char **argv = NULL;
        int r = strv_append(&argv, s->context.sandbox->shim_path);

        if (r >= 0)
                r = strv_append(&argv, "usage");
        if (r >= 0 && eviction_signals[shortage->signal].is_counted)
                r = strv_append(&argv, "--inodes");
        evictions->measured_pods = calloc(count_pod_entries(s) + 1, sizeof(MeasuredPod));
        if (!evictions->measured_pods)
                r = -ENOMEM;
        for (PodEntry *entry = s->entries; r >= 0 && entry; entry = entry->next_entry)
                if (is_evictable(entry->worker))
                        r = add_measured_pod(s, entry->worker, &argv);
        if (r >= 0 && evictions->n_measured_pods == 0)
                r = -ENOENT;
        if (r < 0)
                return r;
        evictions->shortage = *shortage;
        return child_spawn(
                s->context.event,
                &(ChildSpec){ .argv = argv,
                              .output_max = count_measured_paths(evictions) * NUMBER_LINE_MAX + 1,
                              .timeout_usec = MEASURE_TIMEOUT_USEC },
                on_pods_measured, s, &evictions->measure_child, NULL);
}

static bool evict_by_disk_usage(PodManager *s, const ResourceShortage *shortage) {
        bool was_in_vain = s->evictions.has_failed;

        s->evictions.has_failed = false;
        if (was_in_vain)
                return false; /* told now; the next time it is measured again */
        if (measure_pods(s, shortage) >= 0)
                return true;
        forget_measured_pods(&s->evictions);
        return false;
}

/* ---- the supervisor's verbs ---- */

bool pod_manager_evict_pod(PodManager *s, const ResourceShortage *shortage) {
        if (s->stages || pod_manager_is_evicting(s))
                return s->stages == NULL;
        if (eviction_signals[shortage->signal].condition == NODE_DISK_PRESSURE)
                return evict_by_disk_usage(s, shortage);
        return evict_by_cgroup_usage(s, shortage);
}

bool pod_manager_is_evicting(const PodManager *s) {
        const PodWorker *worker =
                s->evictions.evicting_uid ? find_worker_by_uid(s, s->evictions.evicting_uid) : NULL;

        if (s->evictions.measure_child)
                return true;
        return worker && pod_worker_has_failed(worker) && worker->state != WORKER_NO_SANDBOX &&
               now_boottime_usec() < s->evictions.evicting_until;
}

bool pod_manager_has_active_pods(const PodManager *s) {
        for (const PodEntry *entry = s->entries; entry; entry = entry->next_entry)
                if (is_pod_active(entry->worker))
                        return true;
        return false;
}

uint64_t pod_manager_last_evicted_at(const PodManager *s, NodeCondition condition) {
        uint64_t latest = 0;

        for (const PodEntry *entry = s->entries; entry; entry = entry->next_entry)
                if (entry->worker && pod_worker_is_evicted(entry->worker) &&
                    entry->worker->failure.condition == condition)
                        latest = MAX(latest, entry->worker->failure.evicted_at);
        return latest;
}

void pod_manager_readmit_evicted(PodManager *s) {
        unsigned set = s->context.conditions ? s->context.conditions->set : 0;

        for (PodEntry *entry = s->entries; entry; entry = entry->next_entry) {
                PodWorker *worker = entry->worker;

                if (!worker || !worker->is_desired || !pod_worker_is_evicted(worker) ||
                    pod_is_of_api(worker->pod) ||
                    (set & NODE_CONDITION_BIT(worker->failure.condition)) ||
                    worker->pod->spec.restart_policy == RESTART_POLICY_NEVER)
                        continue;
                log_info("Pod '%s' begins again: the node has no %s any more", worker->description,
                         node_conditions[worker->failure.condition].name);
                pod_worker_delete(worker, -1, "it was evicted, and starts again");
        }
}

const uint64_t *pod_manager_eviction_counts(const PodManager *s) {
        return s->evictions.counts;
}
