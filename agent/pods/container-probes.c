/* SPDX-License-Identifier: Apache-2.0 */
/* When a container is probed, by Kubernetes' rules: the startup probe alone until it has passed;
 * then the others; none while a liveness or startup failure is being acted on; readiness to the
 * end, the other two not once the pod is to go.
 *
 * Each probe has a grid of its own, which begins with the container and from which it does not
 * drift: the first probe comes at its time, the points after it are on the beat. A probe whose time
 * comes while the one before is under way follows at once; those that were missed altogether are
 * not made up for. */

#include "agent/pods/container-probes.h"

#include "agent/model/schema.h"
#include "agent/pods/event-recorder.h"
#include "agent/pods/pod-worker-private.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/message-ids.h"

#include <sys/random.h>

/* A few of a thousand probes that are due at nearly the same time may come in one wake-up. */
#define PROBE_ACCURACY_USEC (2 * USEC_PER_MSEC)

/* All grids share it, so that a wake-up serves several probes. A second has a whole number of
 * beats, so no period is another for it. */
#define PROBE_GRID_USEC (100 * USEC_PER_MSEC)

/* Of a sentence in the log or the status. */
enum {
        EXCERPT_MAX = 1024,
        ERRORS_BEFORE_LOG = 3, /* as often the kubelet tries before it says so */
};

static ProbeKind probe_worker_kind(const ProbeWorker *p) {
        return (ProbeKind) (p - p->container->probers.kinds);
}

/* As it is now: a pod may be edited while it runs. */
static const Probe *probe_worker_spec(const ProbeWorker *p) {
        return container_probe(p->container->spec, probe_worker_kind(p));
}

static uint64_t probe_period_usec(const Probe *spec) {
        return (uint64_t) MAX(spec->period_seconds.value, 1) * USEC_PER_SEC;
}

static void begin_probe(ProbeWorker *p);

/* The first point of the grid that is not past. */
static void advance_probe_time(ProbeWorker *p, uint64_t now) {
        uint64_t period = p->period_usec;

        p->next_at += period;
        if (p->next_at <= now)
                p->next_at += (now - p->next_at) / period * period + period;
        p->next_at = (p->next_at + PROBE_GRID_USEC - 1) / PROBE_GRID_USEC * PROBE_GRID_USEC;
}

static void arm_probe_timer(ProbeWorker *p);

static int on_probe_timer(sd_event_source *source, uint64_t usec, void *userdata) {
        ProbeWorker *p = userdata;

        if (!probe_worker_spec(p)) /* edited away a moment ago */
                return 0;
        advance_probe_time(p, now_boottime_usec());
        arm_probe_timer(p);
        if (p->handler_run)
                p->is_due = true;
        else
                begin_probe(p);
        return 0;
}

static void arm_probe_timer(ProbeWorker *p) {
        int r;

        if (p->timer) {
                r = sd_event_source_set_time(p->timer, p->next_at);
                if (r >= 0)
                        r = sd_event_source_set_enabled(p->timer, SD_EVENT_ONESHOT);
        } else
                r = sd_event_add_time(p->container->pod->context->event, &p->timer, CLOCK_BOOTTIME,
                                      p->next_at, PROBE_ACCURACY_USEC, on_probe_timer, p);
        if (r < 0)
                (void) log_error_errno(r, "Cannot arm a probe of '%s/%s'",
                                       p->container->pod->description, p->container->spec->name);
}

static void stop_probe_worker(ProbeWorker *p) {
        p->timer = sd_event_source_disable_unref(p->timer);
        p->handler_run = handler_run_free(p->handler_run);
        p->is_running = p->is_due = false;
        p->run = (ProbeResultRun){ 0 };
        p->n_errors = 0;
}

void container_probes_stop(PodContainer *c) {
        for (size_t kind = 0; kind < N_PROBE_KINDS; kind++)
                stop_probe_worker(&c->probers.kinds[kind]);
        c->probers.has_attempt = false;
}

/* ---- what a result means ---- */

static void set_container_ready(PodContainer *c, bool is_ready) {
        if (c->probers.is_ready == is_ready)
                return;
        c->probers.is_ready = is_ready;
        log_info("Container '%s/%s' is %s", c->pod->description, c->spec->name,
                 is_ready ? "ready" : "not ready any more");
        pod_container_update_checkpoint(c);
        pod_worker_mark_dirty(c->pod);
}

static void set_container_started(PodContainer *c) {
        c->probers.has_started = true;
        c->probers.is_adopted = false; /* what is probed from now on is not one of many */
        log_info("Container '%s/%s' has started", c->pod->description, c->spec->name);
        pod_container_update_checkpoint(c);
        pod_worker_mark_dirty(c->pod);
}

/* In the kubelet's words, and with what the probe said. */
static void kill_for_failed_probe(ProbeWorker *p, const char *message) {
        PodContainer *c = p->container;
        RestartPolicy policy = c->spec->restart_policy != RESTART_POLICY_UNSET
                                       ? c->spec->restart_policy
                                       : c->pod->pod->spec.restart_policy;
        const char *outlook = policy == RESTART_POLICY_NEVER ? "" : ", will be restarted";
        cleanup_free char *sentence = NULL;

        if (asprintf(&sentence, "Container %s failed %s probe%s: %.*s", c->spec->name,
                     probe_kind_names[probe_worker_kind(p)], outlook, EXCERPT_MAX, message) < 0)
                sentence = NULL;
        c->probers.has_failed = true;
        log_warning("Pod '%s': %s", c->pod->description, strna(sentence));
        record_pod_event(c->pod, c->spec->name, POD_EVENT_NORMAL, "Killing",
                         "Container %s failed %s probe%s", c->spec->name,
                         probe_kind_names[probe_worker_kind(p)], outlook);
        pod_container_kill(c, &probe_worker_spec(p)->termination_grace_period_seconds,
                           strna(sentence));
        pod_worker_mark_dirty(c->pod);
}

static void apply_probe_verdict(ProbeWorker *p, ProbeVerdict verdict, const char *message) {
        PodContainer *c = p->container;

        if (verdict == PROBE_UNDECIDED)
                return;
        switch (probe_worker_kind(p)) {
        case PROBE_READINESS:
                set_container_ready(c, verdict == PROBE_PASSED);
                break;
        case PROBE_STARTUP:
                if (verdict == PROBE_PASSED)
                        set_container_started(c);
                else
                        kill_for_failed_probe(p, message);
                break;
        case PROBE_LIVENESS:
                if (verdict == PROBE_FAILED)
                        kill_for_failed_probe(p, message);
                break;
        case N_PROBE_KINDS:
                break;
        }
}

/* An event each time, which costs nobody anything; in the log each turn of the weather, not each
 * drop. */
static void report_probe_result(const ProbeWorker *p, bool success, const char *message) {
        LogSubject subject = pod_worker_log_subject(p->container->pod, p->container->spec->name);
        LOG_ABOUT(&subject);

        if (!success)
                record_pod_event(p->container->pod, p->container->spec->name, POD_EVENT_WARNING,
                                 "Unhealthy", "%s probe failed: %.*s",
                                 probe_kind_titles[probe_worker_kind(p)], EXCERPT_MAX, message);
        if (!success && (!p->run.has_result || p->run.last)) {
                log_set_message_id(MESSAGE_PROBE_FAILED);
                log_info("Pod '%s': container %s: %s probe failed: %.*s",
                         p->container->pod->description, p->container->spec->name,
                         probe_kind_titles[probe_worker_kind(p)], EXCERPT_MAX, message);
        }
}

static void report_probe_error(ProbeWorker *p, const char *message) {
        if (++p->n_errors == ERRORS_BEFORE_LOG)
                log_warning("Pod '%s': container %s: %s probe errored: %.*s",
                            p->container->pod->description, p->container->spec->name,
                            probe_kind_titles[probe_worker_kind(p)], EXCERPT_MAX, message);
}

static void on_probe_result(HandlerResult result, const char *message, void *userdata) {
        ProbeWorker *p = userdata;
        cleanup_free char *copy = strdup(message);
        bool success = result == HANDLER_SUCCEEDED;

        p->handler_run = handler_run_free(p->handler_run);
        p->n_results[result]++;
        if (!probe_worker_spec(p))
                return;
        if (result == HANDLER_ERROR)
                report_probe_error(p, strna(copy)); /* says nothing of the container */
        else {
                p->n_errors = 0;
                report_probe_result(p, success, strna(copy));
                apply_probe_verdict(p, probe_add_result(&p->run, probe_worker_spec(p), success),
                                    strna(copy));
        }
        if (p->is_due && p->is_running)
                begin_probe(p);
}

/* ---- when ---- */

static void begin_probe(ProbeWorker *p) {
        PodContainer *c = p->container;
        char id[65];
        HandlerTarget target = pod_container_handler_target(c, id);
        int r;

        p->is_due = false;
        if (!c->pod->sandbox)
                return;
        r = handler_run_start(
                &target,
                &(HandlerRunSpec){
                        .handler = &probe_worker_spec(p)->handler,
                        .timeout_usec =
                                (uint64_t) MAX(probe_worker_spec(p)->timeout_seconds.value, 1) *
                                USEC_PER_SEC,
                },
                on_probe_result, p, &p->handler_run);
        if (r < 0)
                (void) log_error_errno(r, "Cannot probe '%s/%s'", c->pod->description,
                                       c->spec->name);
}

static uint64_t random_delay_below(uint64_t limit) {
        uint64_t n = 0;

        (void) !getrandom(&n, sizeof(n), GRND_NONBLOCK);
        return n % limit;
}

/* From the moment on at which the container started, as far as that is not past; an agent that has
 * just come does not probe all at once. */
static void start_probe_worker(ProbeWorker *p) {
        const PodContainer *c = p->container;
        uint64_t now = now_boottime_usec(), age, delay;

        p->is_running = true;
        p->period_usec = probe_period_usec(probe_worker_spec(p));
        age = now_realtime_usec() -
              MIN(container_machine_started_at(c->machine), now_realtime_usec());
        delay = (uint64_t) probe_worker_spec(p)->initial_delay_seconds.value * USEC_PER_SEC;
        if (c->probers.is_adopted)
                p->next_at = now +
                             MAX(delay > age ? delay - age : 0, random_delay_below(p->period_usec));
        else
                p->next_at = now + (delay > age ? delay - age : 0);
        arm_probe_timer(p);
}

static bool should_probe(const PodContainer *c, ProbeKind kind) {
        const ContainerProbes *all = &c->probers;

        if (!container_probe(c->spec, kind) || !container_machine_is_up(c->machine) ||
            !c->pod->sandbox)
                return false;
        if (kind == PROBE_READINESS)
                return all->has_started;
        return (kind == PROBE_STARTUP) != all->has_started && !all->has_failed &&
               c->pod->is_desired && !container_machine_is_stopping(c->machine);
}

/* An attempt begins: nothing is known of it yet. */
static void reset_probe_results(PodContainer *c) {
        container_probes_stop(c);
        c->probers.attempt = container_machine_attempt(c->machine);
        c->probers.has_attempt = true;
        c->probers.is_adopted = false;
        c->probers.has_failed = false;
        c->probers.has_started = !c->spec->startup_probe;
        c->probers.is_ready = !c->spec->readiness_probe;
}

/* What is known is of the present attempt. */
static bool are_probe_results_current(const PodContainer *c) {
        return c->probers.has_attempt &&
               c->probers.attempt == container_machine_attempt(c->machine);
}

static void step_probe_worker(PodContainer *c, ProbeKind kind) {
        ProbeWorker *p = &c->probers.kinds[kind];
        bool is_due_now = should_probe(c, kind);

        p->container = c;
        if (p->is_running &&
            (!is_due_now || p->period_usec != probe_period_usec(probe_worker_spec(p))))
                stop_probe_worker(p);
        if (is_due_now && !p->is_running)
                start_probe_worker(p);
}

/* An edit may have taken away what was waited for. That it is not any more is noted, for another
 * edit may bring it back. */
static void apply_removed_probes(PodContainer *c) {
        bool has_started = c->probers.has_started || !c->spec->startup_probe;
        bool is_ready = c->probers.is_ready || !c->spec->readiness_probe;

        if (has_started == c->probers.has_started && is_ready == c->probers.is_ready)
                return;
        c->probers.has_started = has_started;
        c->probers.is_ready = is_ready;
        pod_container_update_checkpoint(c);
}

void container_probes_step(PodContainer *c) {
        if (!container_machine_is_up(c->machine)) {
                container_probes_stop(c);
                return;
        }
        if (!are_probe_results_current(c))
                reset_probe_results(c);
        apply_removed_probes(c);
        for (size_t kind = 0; kind < N_PROBE_KINDS; kind++)
                step_probe_worker(c, (ProbeKind) kind);
}

static bool is_same_probe(const Probe *a, const Probe *b) {
        return a && b && schema_equal(&probe_schema, a, b);
}

void container_probes_on_spec_changed(PodContainer *c, const Container *former) {
        for (size_t kind = 0; kind < N_PROBE_KINDS; kind++) {
                ProbeWorker *p = &c->probers.kinds[kind];

                /* The next step begins it. What is under way otherwise has its own handler. */
                if (p->is_running &&
                    !is_same_probe(container_probe(former, (ProbeKind) kind), probe_worker_spec(p)))
                        stop_probe_worker(p);
        }
}

void container_probes_adopt(PodContainer *c, bool has_started, bool is_ready) {
        reset_probe_results(c);
        c->probers.is_adopted = true;
        c->probers.has_started = c->probers.has_started || has_started;
        c->probers.is_ready = c->probers.is_ready || is_ready;
}

bool container_probes_on_exec_done(PodContainer *c, const SandboxEvent *event) {
        for (size_t kind = 0; kind < N_PROBE_KINDS; kind++)
                if (handler_run_on_exec_done(c->probers.kinds[kind].handler_run, event))
                        return true;
        return false;
}

bool container_probes_have_started(const PodContainer *c) {
        return are_probe_results_current(c) ? c->probers.has_started : !c->spec->startup_probe;
}

bool container_probes_readiness_passed(const PodContainer *c) {
        return are_probe_results_current(c) ? c->probers.is_ready : !c->spec->readiness_probe;
}

bool container_probes_are_ready(const PodContainer *c) {
        return container_probes_have_started(c) && container_probes_readiness_passed(c);
}
