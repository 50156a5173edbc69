/* SPDX-License-Identifier: Apache-2.0 */
/* One pod goes, then the node is looked at again. What pods use of memory and processes is in their
 * groups; what they have written a child has to measure first. Pods of files are evicted like all
 * others, unlike the kubelet's: on a node without a cluster there are no others. But since nobody
 * makes another pod in their place, they come back by themselves when the node has recovered. Pods
 * of an API server do not: there somebody does. */

#include "agent/supervise/eviction.h"

#include "agent/bundle/groups.h"
#include "agent/bundle/paths.h"
#include "agent/model/containers.h"
#include "agent/model/quantity.h"
#include "agent/pressure/rank.h"
#include "agent/supervise/pod-internal.h"
#include "agent/supervise/slot.h"
#include "agent/supervise/storage.h"
#include "common/cgroup-usage.h"
#include "common/cgroup.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/strv.h"

#include <fcntl.h>
#include <stdlib.h>

#define ENDING_USEC     (30 * USEC_PER_SEC) /* beyond its grace, as with the kubelet */
#define MEASURING_USEC  (120 * USEC_PER_SEC)
#define NUMBER_LINE_MAX 32

/* A pod that may go. */
typedef struct Candidate {
        PodLife *life;
        const uint64_t *written; /* as storage_paths() has them; NULL: that does not matter */
        size_t n_written;
} Candidate;

/* What the child was asked for. */
typedef struct Measured {
        char *uid;
        size_t n_paths;
} Measured;

static void forget_measured(Evictions *evictions) {
        for (size_t i = 0; i < evictions->n_measured; i++)
                free(evictions->measured[i].uid);
        free(evictions->measured);
        evictions->measured = NULL;
        evictions->n_measured = 0;
}

void evictions_done(Evictions *evictions) {
        evictions->measuring = child_free(evictions->measuring);
        forget_measured(evictions);
        free(evictions->going);
        evictions->going = NULL;
}

/* Also one that waits out a back-off has what it has written, and memory in volumes. */
static bool is_active(const PodLife *life) {
        return life && life->is_wanted && !pod_life_has_failed(life) && life->sandbox;
}

static bool may_go(const PodLife *life) {
        return is_active(life) && life->pod->spec.priority.value < SYSTEM_CRITICAL_PRIORITY;
}

static size_t count_slots(const Supervisor *s) {
        size_t n = 0;

        for (const Slot *slot = s->slots; slot; slot = slot->following)
                n++;
        return n;
}

/* ---- what a pod uses ---- */

static int64_t memory_request(const Container *container) {
        return container->resources.requests.memory.value;
}

static int64_t storage_request(const Container *container) {
        return container->resources.requests.ephemeral_storage.value;
}

static int64_t count_processes(const char *group) {
        cleanup_free char *path = cgroup_file(group, "pids", "pids.current");
        cleanup_free char *text = NULL;
        cleanup_close int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -EBADF;

        if (fd < 0 || read_stream(fd, NUMBER_LINE_MAX, &text, NULL) < 0)
                return -1;
        return strtoll(text, NULL, 10);
}

static void use_by_group(const PodLife *life, EvictionSignal signal, PodUse *use) {
        const PodSpec *spec = &life->pod->spec;
        cleanup_free char *group =
                group_of_pod(life->context->bundle, pod_qos_class(spec), life->pod->metadata.uid);
        CgroupUsage used;

        if (!group)
                return;
        if (signal == EVICTION_PIDS) {
                use->used = count_processes(group);
                use->is_known = use->used >= 0;
                return;
        }
        use->is_known = cgroup_usage(group, &used) >= 0;
        use->used = use->is_known ? (int64_t) used.working_set_bytes : 0;
        use->requested = quantity_is_set(&spec->resources.requests.memory)
                                 ? spec->resources.requests.memory.value
                                 : pod_aggregate(spec, memory_request);
}

static PodUse use_of(const Candidate *candidate, EvictionSignal signal, size_t index) {
        const PodSpec *spec = &candidate->life->pod->spec;
        PodUse use = { .index = index, .priority = spec->priority.value };

        if (!candidate->written) {
                use_by_group(candidate->life, signal, &use);
                return use;
        }
        use.is_known = true;
        for (size_t i = 0; i < candidate->n_written; i++)
                use.used += (int64_t) MIN(candidate->written[i], (uint64_t) INT32_MAX << 20);
        if (!eviction_signals[signal].is_counted)
                use.requested = pod_aggregate(spec, storage_request);
        return use;
}

static int64_t memory_of(const PodLife *life, const char *pod_group, const PodContainer *c) {
        char id[65];
        cleanup_free char *group = NULL;
        CgroupUsage used;

        container_id(life->pod->metadata.uid, c->spec->name, container_attempt(c->life), id);
        group = group_of_container(pod_group, id);
        return group && cgroup_usage(group, &used) >= 0 ? (int64_t) used.working_set_bytes : 0;
}

static ContainerUse container_use(const Candidate *candidate, const Shortage *shortage,
                                  const char *pod_group, size_t index) {
        const PodContainer *c = &candidate->life->containers[index];
        const ResourceList *requests = &c->spec->resources.requests;
        ContainerUse use = { .name = c->spec->name };

        if (eviction_signals[shortage->signal].condition == NODE_MEMORY_PRESSURE) {
                use.requested = requests->memory.value;
                use.request = requests->memory.text;
                if (container_has_process(c->life))
                        use.used = memory_of(candidate->life, pod_group, c);
        } else if (candidate->written && !eviction_signals[shortage->signal].is_counted) {
                use.requested = requests->ephemeral_storage.value;
                use.request = requests->ephemeral_storage.text;
                use.used = (int64_t) storage_of_container(&candidate->life->pod->spec,
                                                          candidate->written, candidate->n_written,
                                                          index);
        }
        return use;
}

static char *print_message(const Candidate *candidate, const Shortage *shortage) {
        const PodLife *life = candidate->life;
        cleanup_free ContainerUse *uses = calloc(life->n_containers, sizeof(*uses));
        cleanup_free char *group = group_of_pod(
                life->context->bundle, pod_qos_class(&life->pod->spec), life->pod->metadata.uid);

        if (!uses || !group)
                return NULL;
        for (size_t i = 0; i < life->n_containers; i++)
                uses[i] = container_use(candidate, shortage, group, i);
        return sentence_of_eviction(shortage, uses, life->n_containers);
}

/* ---- one goes ---- */

static bool evict_pod(Supervisor *s, const Candidate *candidate, const Shortage *shortage) {
        PodLife *life = candidate->life;
        cleanup_free char *message = print_message(candidate, shortage);
        cleanup_free char *uid = strdup(life->pod->metadata.uid);
        uint64_t grace = pod_life_grace_usec(life);

        if (!message || !uid)
                return false;
        if (shortage->grace_seconds >= 0)
                grace = MIN(grace, (uint64_t) MAX(shortage->grace_seconds, 1) * USEC_PER_SEC);
        pod_life_evict(life, eviction_signals[shortage->signal].condition, message, grace);
        if (!pod_life_has_failed(life))
                return false;
        free(s->evictions.going);
        s->evictions.going = TAKE_PTR(uid);
        s->evictions.going_until = now_boottime_usec() + grace + ENDING_USEC;
        s->evictions.counts[shortage->signal]++;
        return true;
}

static bool evict_first(Supervisor *s, const Candidate *candidates, size_t n,
                        const Shortage *shortage) {
        cleanup_free PodUse *uses = calloc(n + 1, sizeof(*uses));

        if (!uses)
                return false;
        for (size_t i = 0; i < n; i++)
                uses[i] = use_of(&candidates[i], shortage->signal, i);
        rank_pods(shortage->signal, uses, n);
        for (size_t i = 0; i < n; i++)
                if (rank_is_worth_it(shortage->signal, &uses[i],
                                     shortage->quantity - shortage->available) &&
                    evict_pod(s, &candidates[uses[i].index], shortage))
                        return true;
        return false;
}

static bool evict_by_groups(Supervisor *s, const Shortage *shortage) {
        cleanup_free Candidate *candidates = calloc(count_slots(s) + 1, sizeof(*candidates));
        size_t n = 0;

        if (!candidates)
                return false;
        for (Slot *slot = s->slots; slot; slot = slot->following)
                if (may_go(slot->life))
                        candidates[n++] = (Candidate){ .life = slot->life };
        return evict_first(s, candidates, n, shortage);
}

/* ---- what pods have written ---- */

static PodLife *find_life(const Supervisor *s, const char *uid) {
        for (const Slot *slot = s->slots; slot; slot = slot->following)
                if (slot->life && streq(slot->life->pod->metadata.uid, uid))
                        return slot->life;
        return NULL;
}

/* The pod may have gone meanwhile, or been edited. */
static bool is_as_measured(const PodLife *life, const Measured *measured) {
        cleanup_strv char **paths = NULL;

        return may_go(life) && storage_paths(life->context->bundle, life->pod, &paths) >= 0 &&
               strv_length(paths) == measured->n_paths;
}

static size_t count_paths(const Evictions *evictions) {
        size_t n = 0;

        for (size_t i = 0; i < evictions->n_measured; i++)
                n += evictions->measured[i].n_paths;
        return n;
}

static bool read_numbers(const char *text, uint64_t *numbers, size_t n) {
        char *end;

        for (size_t i = 0; i < n; i++) {
                numbers[i] = strtoull(text, &end, 10);
                if (end == text || *end != '\n')
                        return false;
                text = end + 1;
        }
        return true;
}

static void on_measured(const ChildResult *result, void *userdata) {
        Supervisor *s = userdata;
        Evictions *evictions = &s->evictions;
        size_t n_paths = count_paths(evictions), n = 0, at = 0;
        cleanup_free uint64_t *written = calloc(n_paths + 1, sizeof(*written));
        cleanup_free Candidate *candidates = calloc(evictions->n_measured + 1, sizeof(*candidates));

        evictions->measuring = NULL;
        if (written && candidates && child_succeeded(result) &&
            read_numbers(result->output, written, n_paths)) {
                for (size_t i = 0; i < evictions->n_measured; i++) {
                        const Measured *measured = &evictions->measured[i];
                        PodLife *life = find_life(s, measured->uid);

                        if (is_as_measured(life, measured))
                                candidates[n++] =
                                        (Candidate){ life, &written[at], measured->n_paths };
                        at += measured->n_paths;
                }
                evictions->has_failed = !evict_first(s, candidates, n, &evictions->shortage);
        }
        forget_measured(evictions);
}

static int add_measured(Supervisor *s, const PodLife *life, char ***argv) {
        Measured *measured = &s->evictions.measured[s->evictions.n_measured];
        cleanup_strv char **paths = NULL;
        int r = storage_paths(s->context.bundle, life->pod, &paths);

        if (r >= 0)
                r = strv_extend(argv, paths);
        if (r < 0)
                return r;
        *measured = (Measured){ strdup(life->pod->metadata.uid), strv_length(paths) };
        if (!measured->uid)
                return -ENOMEM;
        s->evictions.n_measured++;
        return 0;
}

static int measure(Supervisor *s, const Shortage *shortage) {
        Evictions *evictions = &s->evictions;
        cleanup_strv char **argv = NULL;
        int r = strv_append(&argv, s->context.sandbox->shim_path);

        if (r >= 0)
                r = strv_append(&argv, "usage");
        if (r >= 0 && eviction_signals[shortage->signal].is_counted)
                r = strv_append(&argv, "--inodes");
        evictions->measured = calloc(count_slots(s) + 1, sizeof(Measured));
        if (!evictions->measured)
                r = -ENOMEM;
        for (Slot *slot = s->slots; r >= 0 && slot; slot = slot->following)
                if (may_go(slot->life))
                        r = add_measured(s, slot->life, &argv);
        if (r >= 0 && evictions->n_measured == 0)
                r = -ENOENT;
        if (r < 0)
                return r;
        evictions->shortage = *shortage;
        return child_spawn(s->context.event,
                           &(ChildSpec){ .argv = argv,
                                         .output_max = count_paths(evictions) * NUMBER_LINE_MAX + 1,
                                         .timeout_usec = MEASURING_USEC },
                           on_measured, s, &evictions->measuring, NULL);
}

static bool evict_by_disk(Supervisor *s, const Shortage *shortage) {
        bool was_in_vain = s->evictions.has_failed;

        s->evictions.has_failed = false;
        if (was_in_vain)
                return false; /* told now; the next time it is measured again */
        if (measure(s, shortage) >= 0)
                return true;
        forget_measured(&s->evictions);
        return false;
}

/* ---- the supervisor's verbs ---- */

bool supervisor_evict(Supervisor *s, const Shortage *shortage) {
        if (s->stages || supervisor_is_evicting(s))
                return s->stages == NULL;
        if (eviction_signals[shortage->signal].condition == NODE_DISK_PRESSURE)
                return evict_by_disk(s, shortage);
        return evict_by_groups(s, shortage);
}

bool supervisor_is_evicting(const Supervisor *s) {
        const PodLife *life = s->evictions.going ? find_life(s, s->evictions.going) : NULL;

        if (s->evictions.measuring)
                return true;
        return life && pod_life_has_failed(life) && life->phase != PHASE_NONE &&
               now_boottime_usec() < s->evictions.going_until;
}

bool supervisor_is_active(const Supervisor *s) {
        for (const Slot *slot = s->slots; slot; slot = slot->following)
                if (is_active(slot->life))
                        return true;
        return false;
}

uint64_t supervisor_evicted_at(const Supervisor *s, NodeCondition condition) {
        uint64_t latest = 0;

        for (const Slot *slot = s->slots; slot; slot = slot->following)
                if (slot->life && pod_life_is_evicted(slot->life) &&
                    slot->life->failure.condition == condition)
                        latest = MAX(latest, slot->life->failure.evicted_at);
        return latest;
}

void supervisor_let_return(Supervisor *s) {
        unsigned set = s->context.conditions ? s->context.conditions->set : 0;

        for (Slot *slot = s->slots; slot; slot = slot->following) {
                PodLife *life = slot->life;

                if (!life || !life->is_wanted || !pod_life_is_evicted(life) ||
                    pod_is_of_api(life->pod) ||
                    (set & NODE_CONDITION_BIT(life->failure.condition)) ||
                    life->pod->spec.restart_policy == RESTART_POLICY_NEVER)
                        continue;
                log_info("Pod '%s' begins again: the node has no %s any more", life->description,
                         node_conditions[life->failure.condition].name);
                pod_life_delete(life, -1);
        }
}

const uint64_t *supervisor_eviction_counts(const Supervisor *s) {
        return s->evictions.counts;
}
