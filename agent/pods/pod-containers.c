/* SPDX-License-Identifier: Apache-2.0 */
/* The order of a pod's containers (order.c), done. Level-triggered like the rest of the pod: facts
 * are looked at anew each time, so that an agent that comes in the middle goes on from there.
 *
 * A restart of all containers has three parts: all end, each is put back to waiting, and what is
 * left of the back-off of the one that asked is sat out. Which attempts are of before it is in
 * their notes: the pod's generation, which counts such restarts. */

#include "agent/pods/pod-worker-private.h"
#include "common/clock.h"
#include "common/log.h"

/* Who is ended late, or for a restart of all, still has this long, as with the kubelet. */
#define GRACE_MIN_USEC (2 * USEC_PER_SEC)

static void observe_containers(PodWorker *worker) {
        for (size_t i = 0; i < worker->n_containers; i++) {
                const PodContainer *c = &worker->containers[i];

                worker->container_order[i] = (ContainerOrderEntry){
                        .role = container_role(&worker->pod->spec, c->spec),
                        .has_run = c->has_run,
                        .has_started = container_machine_has_started(c->machine) &&
                                       container_probes_have_started(c),
                        .is_waiting = container_machine_is_waiting(c->machine),
                        .is_finished = container_machine_is_finished(c->machine),
                        .has_succeeded = container_machine_has_succeeded(c->machine),
                };
        }
}

PodProgress pod_worker_progress(PodWorker *worker) {
        observe_containers(worker);
        return pod_progress_of(worker->container_order, worker->n_containers);
}

bool pod_worker_must_stop_containers(const PodWorker *worker) {
        return !worker->is_desired || pod_worker_has_failed(worker) ||
               worker->restart_all == RESTART_ALL_STOPPING;
}

bool pod_worker_should_run(PodWorker *worker) {
        PodProgress progress = pod_worker_progress(worker);

        if (!worker->is_desired || pod_worker_has_failed(worker))
                return false;
        return worker->restart_all != RESTART_ALL_NONE || progress == PROGRESS_INITIALIZING ||
               progress == PROGRESS_RUNNING;
}

bool pod_worker_may_start_container(PodContainer *c) {
        PodWorker *worker = c->pod;

        observe_containers(worker);
        return pod_worker_sandbox_is_ready(worker) && !pod_worker_must_stop_containers(worker) &&
               worker->restart_all == RESTART_ALL_NONE &&
               container_order_allows_start(worker->container_order, worker->n_containers,
                                            (size_t) (c - worker->containers));
}

uint64_t pod_worker_grace_usec(const PodWorker *worker) {
        int64_t seconds = worker->pod->spec.termination_grace_period_seconds.value;
        uint64_t grace;

        if (worker->has_grace)
                seconds = worker->grace_seconds;
        /* Even a grace of nothing is a second, as with the kubelet. */
        grace = (uint64_t) MIN(MAX(seconds, 1), INT32_MAX) * USEC_PER_SEC;
        return worker->failure.grace_usec > 0 ? MIN(grace, worker->failure.grace_usec) : grace;
}

uint64_t pod_worker_remaining_grace_usec(const PodWorker *worker) {
        uint64_t grace = pod_worker_grace_usec(worker);
        uint64_t passed =
                worker->stopping_since > 0 ? now_boottime_usec() - worker->stopping_since : 0;

        if (worker->restart_all == RESTART_ALL_STOPPING)
                return GRACE_MIN_USEC;
        /* Who had to wait for others has what they left. */
        return passed < grace ? grace - passed : MIN(GRACE_MIN_USEC, grace);
}

/* ---- a restart of all ---- */

static int on_restart_all_timer(sd_event_source *source, uint64_t usec, void *userdata) {
        PodWorker *worker = userdata;

        worker->restart_all_timer = sd_event_source_disable_unref(worker->restart_all_timer);
        worker->restart_all = RESTART_ALL_NONE;
        pod_worker_mark_dirty(worker);
        return 0;
}

static void hold_restart_all(PodWorker *worker, uint64_t delay_usec) {
        int r = 0;

        worker->restart_all = delay_usec > 0 ? RESTART_ALL_BACK_OFF : RESTART_ALL_NONE;
        if (delay_usec > 0)
                r = sd_event_add_time_relative(worker->context->event, &worker->restart_all_timer,
                                               CLOCK_BOOTTIME, delay_usec, 0, on_restart_all_timer,
                                               worker);
        if (r >= 0)
                return;
        (void) log_error_errno(r, "Cannot arm the restart of pod '%s'", worker->description);
        worker->restart_all = RESTART_ALL_NONE;
}

/* The longest wait of those that ask for it; false where none does. */
static bool find_restart_all_delay(const PodWorker *worker, uint64_t *ret_delay_usec) {
        uint64_t delay, longest = 0;
        bool found = false;

        for (size_t i = 0; i < worker->n_containers; i++)
                if (container_machine_wants_restart_all(worker->containers[i].machine, &delay)) {
                        longest = MAX(longest, delay);
                        found = true;
                }
        *ret_delay_usec = longest;
        return found;
}

static bool have_all_containers_finished(const PodWorker *worker) {
        for (size_t i = 0; i < worker->n_containers; i++)
                if (!container_machine_is_finished(worker->containers[i].machine))
                        return false;
        return true;
}

static void reset_container(PodContainer *c) {
        container_machine_stop(c->machine);
        container_machine_reset(c->machine);
        c->has_run = false;
}

static void step_restart_all(PodWorker *worker) {
        uint64_t delay = 0;

        if (!worker->is_desired || pod_worker_has_failed(worker))
                worker->restart_all = RESTART_ALL_NONE;
        else if (worker->restart_all == RESTART_ALL_NONE &&
                 find_restart_all_delay(worker, &delay)) {
                worker->restart_all = RESTART_ALL_STOPPING;
                log_info("All containers of pod '%s' are restarted", worker->description);
        }
        if (worker->restart_all != RESTART_ALL_STOPPING || !have_all_containers_finished(worker))
                return;
        (void) find_restart_all_delay(worker, &delay);
        for (size_t i = 0; i < worker->n_containers; i++)
                reset_container(&worker->containers[i]);
        worker->generation++;
        hold_restart_all(worker, delay);
}

void pod_worker_adopt_order(PodWorker *worker) {
        for (size_t i = 0; i < worker->n_containers; i++)
                worker->generation = MAX(worker->generation, worker->containers[i].generation);
        for (size_t i = 0; i < worker->n_containers; i++) {
                PodContainer *c = &worker->containers[i];

                if (c->has_run && c->generation < worker->generation &&
                    !container_machine_has_process(c->machine))
                        reset_container(c);
        }
}

/* ---- what is due ---- */

static void act_on_container(PodContainer *c, ContainerOrderAction action) {
        switch (action) {
        case ORDER_START:
                container_machine_start(c->machine);
                break;
        case ORDER_RETIRE:
                container_machine_disable_restart(c->machine);
                break;
        case ORDER_STOP:
                container_machine_stop(c->machine);
                break;
        case ORDER_NOTHING:
                break;
        }
}

void pod_worker_sync_containers(PodWorker *worker) {
        ContainerOrderInput input = { 0 };

        step_restart_all(worker);
        input.must_end = pod_worker_must_stop_containers(worker);
        input.must_hold = worker->restart_all != RESTART_ALL_NONE;
        if (!input.must_end && pod_worker_should_run(worker))
                worker->stopping_since = 0;
        else if (worker->stopping_since == 0)
                worker->stopping_since = now_boottime_usec();
        input.is_late =
                worker->restart_all == RESTART_ALL_STOPPING ||
                (worker->stopping_since > 0 &&
                 now_boottime_usec() - worker->stopping_since >= pod_worker_grace_usec(worker));
        observe_containers(worker);
        plan_container_order(worker->container_order, worker->n_containers, &input);
        for (size_t i = 0; i < worker->n_containers; i++)
                act_on_container(&worker->containers[i], worker->container_order[i].action);
}

void pod_worker_reset_order(PodWorker *worker) {
        for (size_t i = 0; i < worker->n_containers; i++) {
                PodContainer *c = &worker->containers[i];

                c->has_run = false;
                if (container_role(&worker->pod->spec, c->spec) == ROLE_INIT)
                        container_machine_reset(c->machine);
        }
}
