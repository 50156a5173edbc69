/* SPDX-License-Identifier: Apache-2.0 */

/* What pods there are, and whose. */

#include "agent/daemons-private.h"
#include "common/cleanup.h"
#include "common/clock.h"

#include <stdlib.h>

const char revision_hash_label[] = "controller-revision-hash";

static int see(const Pod *pod, const PodStatus *status, void *userdata) {
        Daemons *daemons = userdata;
        const PodCondition *ready = &status->conditions[CONDITION_READY];
        size_t n = daemons->n_seen;
        SeenPod *seen = reallocarray(daemons->seen, n + 1, sizeof(*seen));
        const Pod **peers;

        if (!seen)
                return -ENOMEM;
        daemons->seen = seen;
        peers = reallocarray(daemons->peers, n + 1, sizeof(*peers));
        if (!peers)
                return -ENOMEM;
        daemons->peers = peers;
        peers[n] = pod;
        seen[n] = (SeenPod){
                .pod = pod,
                .is_syncing = status->is_syncing,
                .is_ending = status->deletion_time > 0 || pod_is_of_api(pod),
                .is_of_api = pod_is_of_api(pod),
                .is_ready = ready->is_true,
                .is_orphan = daemons_has_orphan(daemons, pod),
                .waits_for_node = pod_status_waits_for_node(status),
                .phase = status->phase,
                .ready_stamp = ready->last_transition,
                .start_time = status->start_time,
        };
        daemons->n_seen++;
        return 0;
}

int daemons_see(Daemons *daemons) {
        daemons_forget_seen(daemons);
        return supervisor_each(daemons->config.supervisor, see, daemons);
}

void daemons_forget_seen(Daemons *daemons) {
        free(daemons->seen);
        free(daemons->peers);
        daemons->seen = NULL;
        daemons->peers = NULL;
        daemons->n_seen = 0;
}

void own_pods_done(OwnPods *own) {
        free(own->seen);
        free(own->pods);
        free(own->keep);
        *own = (OwnPods){ 0 };
}

/* Its own, or one that nobody owns any more. */
static bool is_of(const Daemon *daemon, const SeenPod *seen) {
        const OwnerReference *owner = object_controller(&seen->pod->metadata);

        if (owner)
                return streq(owner->uid, daemon->uid);
        return seen->is_orphan && !seen->is_ending && daemonset_selects(daemon->set, seen->pod);
}

/* The stamp of a pod stands on the machine's clock, which may be set; what is counted from it does
 * not move with that. */
static uint64_t ready_since(const Daemons *daemons, Daemon *daemon, const SeenPod *seen,
                            bool is_current) {
        uint64_t since;

        if (!seen->is_ready)
                return 0;
        if (is_current && seen->ready_stamp == daemon->ready_stamp)
                return daemon->ready_since;
        since = steady_of_realtime_usec(daemons->config.clock, seen->ready_stamp);
        if (is_current) {
                daemon->ready_stamp = seen->ready_stamp;
                daemon->ready_since = since;
        }
        return since;
}

int daemon_collect_pods(const Daemons *daemons, Daemon *daemon, OwnPods *ret) {
        const char *hash = history_wanted(&daemon->history);
        cleanup_with(own_pods_done) OwnPods own = { 0 };

        own.seen = calloc(daemons->n_seen + 1, sizeof(*own.seen));
        own.pods = calloc(daemons->n_seen + 1, sizeof(*own.pods));
        own.keep = calloc(daemons->n_seen + 1, sizeof(*own.keep));
        if (!own.seen || !own.pods || !own.keep)
                return -ENOMEM;
        for (size_t i = 0; i < daemons->n_seen; i++) {
                SeenPod *seen = &daemons->seen[i];
                const StringMap *labels = &seen->pod->metadata.labels;
                bool is_current = streq_ptr(string_map_get(labels, revision_hash_label), hash);

                if (!is_of(daemon, seen))
                        continue;
                own.seen[own.n] = seen;
                own.pods[own.n++] = (DaemonPod){
                        .is_current = is_current,
                        .is_ending = seen->is_ending,
                        .is_syncing = seen->is_syncing,
                        .has_ended = !seen->waits_for_node &&
                                     (seen->phase == POD_FAILED || seen->phase == POD_SUCCEEDED),
                        .is_ready = seen->is_ready,
                        .ready_since = ready_since(daemons, daemon, seen, is_current),
                        .start_time = seen->start_time,
                };
        }
        *ret = own;
        own = (OwnPods){ 0 };
        return 0;
}

/* As the controller counts: of the pods on a node the oldest speaks for it. */
void daemon_count_pods(const Daemons *daemons, Daemon *daemon, const OwnPods *own) {
        uint64_t patience = (uint64_t) daemon->set->spec.min_ready_seconds.value * USEC_PER_SEC;
        const DaemonPod *oldest = NULL;

        daemon->n_current = 0;
        for (size_t i = 0; i < own->n; i++) {
                const DaemonPod *pod = &own->pods[i];

                if (pod->is_ending)
                        continue;
                daemon->n_current++;
                if (!oldest || pod->start_time < oldest->start_time)
                        oldest = pod;
        }
        daemon->n_updated = oldest && oldest->is_current;
        daemon->n_ready = oldest && oldest->is_ready;
        daemon->n_available =
                oldest && oldest->is_ready &&
                steady_now_usec(daemons->config.clock) >= oldest->ready_since + patience;
}

bool daemon_has_pods(const Daemons *daemons, const Daemon *daemon) {
        for (size_t i = 0; i < daemons->n_seen; i++) {
                const OwnerReference *owner = object_controller(&daemons->seen[i].pod->metadata);

                if (owner && streq(owner->uid, daemon->uid) && !daemons->seen[i].is_of_api)
                        return true;
        }
        return false;
}

int daemons_look(Daemons *daemons) {
        int r = daemons_see(daemons);

        for (Daemon *daemon = daemons->list; daemon && r >= 0; daemon = daemon->next) {
                cleanup_with(own_pods_done) OwnPods own = { 0 };

                if (!daemon->set)
                        continue;
                r = daemon_collect_pods(daemons, daemon, &own);
                if (r >= 0)
                        daemon_count_pods(daemons, daemon, &own);
        }
        return r;
}
