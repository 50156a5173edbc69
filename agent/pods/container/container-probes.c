/* SPDX-License-Identifier: Apache-2.0 */
/* Kubernetes' rules: the startup probe runs alone until it has passed, then the others run. The
 * readiness probe runs until the container ends. The other two end with the termination of the pod,
 * or when the container is killed for a failed probe.
 *
 * Each probe has a schedule of fixed points, which starts with the container and does not drift. A
 * probe that becomes due while its previous run is in progress starts as soon as that run ends;
 * points that were missed altogether are skipped. */

#include "agent/pods/container/container-probes.h"

#include "agent/model/containers.h"
#include "agent/model/schema.h"
#include "agent/pods/pod/event-recorder.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/dump.h"
#include "common/event-source.h"
#include "common/log.h"
#include "common/message-ids.h"
#include "common/text.h"

#include <inttypes.h>
#include <sys/random.h>

/* Probes that are due at nearly the same time share one wake-up. */
#define PROBE_ACCURACY_USEC (2 * USEC_PER_MSEC)

/* The points of all schedules are multiples of this, so that a wake-up serves several probes. It
 * divides a second, so periods stay exact. */
#define PROBE_GRID_USEC (100 * USEC_PER_MSEC)

enum {
        EXCERPT_MAX = 1024,    /* maximum size of a probe's output in the log or the status */
        ERRORS_BEFORE_LOG = 3, /* the number of tries in the kubelet */
};

/* The current spec, because a pod may be edited while it runs. */
static const Probe *probe_worker_spec(const ProbeWorker *p) {
        return container_probe(p->probes->container->spec, p->kind);
}

static uint64_t probe_period_usec(const Probe *spec) {
        return (uint64_t) MAX(spec->period_seconds.value, 1) * USEC_PER_SEC;
}

static void run_probe(ProbeWorker *p);

/* The first point of the schedule after now. */
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

        if (!probe_worker_spec(p)) /* an edit has just removed the probe */
                return 0;
        advance_probe_time(p, now_awake_usec());
        arm_probe_timer(p);
        if (p->handler_run)
                p->is_due = true;
        else
                run_probe(p);
        return 0;
}

static void arm_probe_timer(ProbeWorker *p) {
        const ContainerInstance *c = p->probes->container;
        int r;

        if (p->timer)
                r = event_timer_arm_at(p->timer, p->next_at);
        else
                r = sd_event_add_time(c->pod->context->event, &p->timer, CLOCK_AWAKE, p->next_at,
                                      PROBE_ACCURACY_USEC, on_probe_timer, p);
        if (r < 0)
                (void) log_error_errno(
                        r, "Cannot arm the timer of the %s probe of container '%s/%s'",
                        probe_kind_names[p->kind], c->pod->description, c->spec->name);
}

static void stop_probe_worker(ProbeWorker *p) {
        p->timer = sd_event_source_disable_unref(p->timer);
        p->handler_run = handler_run_free(p->handler_run);
        p->is_running = p->is_due = false;
        p->run = (ProbeResultRun){ 0 };
        p->n_errors = 0;
}

static void stop_probes(ContainerProbes *probes) {
        for (size_t kind = 0; kind < N_PROBE_KINDS; kind++)
                if (probes->kinds[kind])
                        stop_probe_worker(probes->kinds[kind]);
        probes->has_attempt = false;
}

void container_probes_done(ContainerProbes *probes) {
        stop_probes(probes);
        for (size_t kind = 0; kind < N_PROBE_KINDS; kind++) {
                free(probes->kinds[kind]);
                probes->kinds[kind] = NULL;
        }
}

/* ---- results ---- */

static void set_container_ready(ContainerProbes *probes, bool is_ready) {
        const ContainerInstance *c = probes->container;

        if (probes->is_ready == is_ready)
                return;
        probes->is_ready = is_ready;
        log_info("Container '%s/%s' is %s", c->pod->description, c->spec->name,
                 is_ready ? "ready" : "no longer ready");
        probes->callbacks->on_changed(probes->userdata);
        pod_instance_mark_dirty(c->pod);
}

static void set_container_started(ContainerProbes *probes) {
        const ContainerInstance *c = probes->container;

        probes->has_started = true;
        probes->is_adopted = false; /* the other probes start now instead of at a shared point of
                                     * the schedules */
        log_info("Container '%s/%s' has started", c->pod->description, c->spec->name);
        probes->callbacks->on_changed(probes->userdata);
        pod_instance_mark_dirty(c->pod);
}

/* The kubelet's message, with the probe's output. The probe does not run again, because the pod is
 * stepped only when the loop is otherwise idle, and a second failure would cause a second kill. */
static void kill_for_failed_probe(ProbeWorker *p, const char *output) {
        const ContainerInstance *c = p->probes->container;
        RestartPolicy policy = container_own_restart_policy(&c->pod->pod->spec, c->spec);
        const char *outlook = policy == RESTART_POLICY_NEVER ? "" : ", will be restarted";
        cleanup_free char *message =
                text_format("Container %s failed %s probe%s: %.*s", c->spec->name,
                            probe_kind_names[p->kind], outlook, EXCERPT_MAX, output);

        p->probes->has_failed = true;
        log_warning("Pod '%s': %s", c->pod->description, strna(message));
        record_pod_event(c->pod, c->spec->name, POD_EVENT_NORMAL, "Killing",
                         "Container %s failed %s probe%s", c->spec->name, probe_kind_names[p->kind],
                         outlook);
        p->probes->callbacks->kill(&probe_worker_spec(p)->termination_grace_period_seconds,
                                   strna(message), p->probes->userdata);
        stop_probe_worker(p);
}

static void apply_probe_verdict(ProbeWorker *p, ProbeVerdict verdict, const char *message) {
        if (verdict == PROBE_UNDECIDED)
                return;
        switch (p->kind) {
        case PROBE_READINESS:
                set_container_ready(p->probes, verdict == PROBE_PASSED);
                break;
        case PROBE_STARTUP:
                if (verdict == PROBE_PASSED)
                        set_container_started(p->probes);
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

/* Every failure is an event; only the first after a success is logged. */
static void report_probe_result(const ProbeWorker *p, bool success, const char *message) {
        const ContainerInstance *c = p->probes->container;

        if (!success)
                record_pod_event(c->pod, c->spec->name, POD_EVENT_WARNING, "Unhealthy",
                                 "%s probe failed: %.*s", probe_kind_titles[p->kind], EXCERPT_MAX,
                                 message);
        if (!success && (!p->run.has_result || p->run.last)) {
                log_set_message_id(MESSAGE_PROBE_FAILED);
                log_info("Pod '%s': container %s: %s probe failed: %.*s", c->pod->description,
                         c->spec->name, probe_kind_titles[p->kind], EXCERPT_MAX, message);
        }
}

static void report_probe_warning(const ProbeWorker *p, const char *message) {
        const ContainerInstance *c = p->probes->container;

        record_pod_event(c->pod, c->spec->name, POD_EVENT_WARNING, "ProbeWarning",
                         "%s probe warning: %.*s", probe_kind_titles[p->kind], EXCERPT_MAX,
                         message);
}

static void report_probe_error(ProbeWorker *p, const char *message) {
        const ContainerInstance *c = p->probes->container;

        if (++p->n_errors == ERRORS_BEFORE_LOG)
                log_warning("Pod '%s': container %s: %s probe errored: %.*s", c->pod->description,
                            c->spec->name, probe_kind_titles[p->kind], EXCERPT_MAX, message);
}

static void on_probe_result(HandlerResult result, const char *message, void *userdata) {
        ProbeWorker *p = userdata;
        const ContainerInstance *c = p->probes->container;
        LogSubject subject = pod_instance_log_subject(c->pod, c->spec->name);
        cleanup_free char *copy = strdup(message);
        bool success = result == HANDLER_SUCCEEDED || result == HANDLER_WARNING;
        LOG_ABOUT(&subject);

        p->handler_run = handler_run_free(p->handler_run);
        p->n_results[success ? HANDLER_SUCCEEDED : result]++;
        if (!probe_worker_spec(p))
                return;
        if (result == HANDLER_ERROR)
                report_probe_error(p, strna(copy)); /* without a result, the container does not
                                                     * change */
        else {
                p->n_errors = 0;
                if (result == HANDLER_WARNING)
                        report_probe_warning(p, strna(copy));
                report_probe_result(p, success, strna(copy));
                apply_probe_verdict(p,
                                    probe_apply_threshold(&p->run, probe_worker_spec(p), success),
                                    strna(copy));
        }
        if (p->is_due && p->is_running)
                run_probe(p);
}

/* ---- schedule ---- */

static void run_probe(ProbeWorker *p) {
        const ContainerInstance *c = p->probes->container;
        const Probe *spec = probe_worker_spec(p);
        char id[CONTAINER_ID_SIZE];
        HandlerTarget target = container_instance_handler_target(c, id);
        int r;

        p->is_due = false;
        if (!c->pod->sandbox)
                return;
        r = handler_run_start(
                &target,
                &(HandlerRunSpec){
                        .handler = &spec->handler,
                        .timeout_usec =
                                (uint64_t) MAX(spec->timeout_seconds.value, 1) * USEC_PER_SEC,
                },
                on_probe_result, p, &p->handler_run);
        if (r < 0)
                (void) log_error_errno(r, "Cannot run the %s probe of container '%s/%s'",
                                       probe_kind_names[p->kind], c->pod->description,
                                       c->spec->name);
}

static uint64_t random_delay_below(uint64_t limit) {
        uint64_t n = 0;

        (void) !getrandom(&n, sizeof(n), GRND_NONBLOCK);
        return n % limit;
}

/* initialDelaySeconds counts from the start of the container. Adopted containers get a random
 * delay, so that a restarted agent does not run all probes at once. */
static void start_probe_worker(ProbeWorker *p) {
        const ContainerInstance *c = p->probes->container;
        uint64_t now = now_awake_usec(), age = container_machine_running_usec(c->machine), delay;

        p->is_running = true;
        p->period_usec = probe_period_usec(probe_worker_spec(p));
        delay = (uint64_t) probe_worker_spec(p)->initial_delay_seconds.value * USEC_PER_SEC;
        delay = delay > age ? delay - age : 0;
        if (p->probes->is_adopted)
                delay = MAX(delay, random_delay_below(p->period_usec));
        p->next_at = now + delay;
        arm_probe_timer(p);
}

static bool should_probe(const ContainerProbes *probes, ProbeKind kind) {
        const ContainerInstance *c = probes->container;

        if (!container_probe(c->spec, kind) || !container_machine_is_up(c->machine) ||
            !c->pod->sandbox)
                return false;
        if (kind == PROBE_READINESS)
                return probes->has_started;
        return (kind == PROBE_STARTUP) != probes->has_started && !probes->has_failed &&
               c->pod->is_desired && !container_machine_is_stopping(c->machine);
}

/* An attempt starts: none of its probes has a result yet. */
static void reset_probe_results(ContainerProbes *probes) {
        const ContainerInstance *c = probes->container;

        stop_probes(probes);
        probes->attempt = container_machine_attempt(c->machine);
        probes->has_attempt = true;
        probes->is_adopted = false;
        probes->has_failed = false;
        probes->has_started = !c->spec->startup_probe;
        probes->is_ready = !c->spec->readiness_probe;
}

/* Whether the results belong to the current attempt. */
static bool are_probe_results_current(const ContainerProbes *probes) {
        return probes->has_attempt &&
               probes->attempt == container_machine_attempt(probes->container->machine);
}

/* NULL: out of memory; the next step tries again. */
static ProbeWorker *get_probe_worker(ContainerProbes *probes, ProbeKind kind) {
        ProbeWorker **worker = &probes->kinds[kind];

        if (!*worker) {
                *worker = calloc(1, sizeof(**worker));
                if (*worker) {
                        (*worker)->probes = probes;
                        (*worker)->kind = kind;
                }
        }
        return *worker;
}

static void step_probe_worker(ContainerProbes *probes, ProbeKind kind) {
        bool is_due_now = should_probe(probes, kind);
        ProbeWorker *p = is_due_now ? get_probe_worker(probes, kind) : probes->kinds[kind];

        if (!p)
                return;
        if (p->is_running &&
            (!is_due_now || p->period_usec != probe_period_usec(probe_worker_spec(p))))
                stop_probe_worker(p);
        if (is_due_now && !p->is_running)
                start_probe_worker(p);
}

/* An edit may have removed a probe whose success was awaited. The checkpoint records that the probe
 * has passed, because a later edit may add one again. */
static void apply_removed_probes(ContainerProbes *probes) {
        const Container *spec = probes->container->spec;
        bool has_started = probes->has_started || !spec->startup_probe;
        bool is_ready = probes->is_ready || !spec->readiness_probe;

        if (has_started == probes->has_started && is_ready == probes->is_ready)
                return;
        probes->has_started = has_started;
        probes->is_ready = is_ready;
        probes->callbacks->on_changed(probes->userdata);
}

void container_probes_step(ContainerProbes *probes) {
        if (!container_machine_is_up(probes->container->machine)) {
                stop_probes(probes);
                return;
        }
        if (!are_probe_results_current(probes))
                reset_probe_results(probes);
        apply_removed_probes(probes);
        for (size_t kind = 0; kind < N_PROBE_KINDS; kind++)
                step_probe_worker(probes, (ProbeKind) kind);
}

static bool is_same_probe(const Probe *a, const Probe *b) {
        return a && b && schema_equal(&probe_schema, a, b);
}

void container_probes_on_spec_changed(ContainerProbes *probes, const Container *former) {
        for (size_t kind = 0; kind < N_PROBE_KINDS; kind++) {
                ProbeWorker *p = probes->kinds[kind];

                /* The next step starts the probe. A run in progress has its own copy of the
                 * handler. */
                if (p && p->is_running &&
                    !is_same_probe(container_probe(former, (ProbeKind) kind), probe_worker_spec(p)))
                        stop_probe_worker(p);
        }
}

void container_probes_adopt(ContainerProbes *probes, const AttemptCheckpoint *checkpoint) {
        reset_probe_results(probes);
        probes->is_adopted = true;
        probes->has_started = probes->has_started || checkpoint->has_started;
        probes->is_ready = probes->is_ready || checkpoint->is_ready;
        probes->has_failed = checkpoint->is_killed;
}

bool container_probes_have_started(const ContainerProbes *probes) {
        return are_probe_results_current(probes) ? probes->has_started
                                                 : !probes->container->spec->startup_probe;
}

bool container_probes_readiness_passed(const ContainerProbes *probes) {
        return are_probe_results_current(probes) ? probes->is_ready
                                                 : !probes->container->spec->readiness_probe;
}

bool container_probes_are_ready(const ContainerProbes *probes) {
        return container_probes_have_started(probes) && container_probes_readiness_passed(probes);
}

/* ---- metrics ---- */

static const char *const probe_result_names[N_HANDLER_RESULTS] = {
        [HANDLER_SUCCEEDED] = "successful",
        [HANDLER_FAILED] = "failed",
        [HANDLER_ERROR] = "unknown",
};

static void report_probe_samples(const ContainerProbes *probes, ProbeKind kind, probe_sample_t each,
                                 void *userdata) {
        const ContainerInstance *c = probes->container;
        const ObjectMeta *pod = &c->pod->pod->metadata;
        const ProbeWorker *p = probes->kinds[kind];

        for (size_t i = 0; p && i < N_HANDLER_RESULTS; i++) {
                const ProbeSample sample = {
                        .probe_type = probe_kind_titles[kind],
                        .result = probe_result_names[i],
                        .container = c->spec->name,
                        .pod = pod->name,
                        .namespace = pod->namespace,
                        .uid = pod->uid,
                        .n = p->n_results[i],
                };

                if (sample.n > 0)
                        each(&sample, userdata);
        }
}

void container_probes_for_each_sample(const ContainerProbes *probes, probe_sample_t each,
                                      void *userdata) {
        for (size_t kind = 0; kind < N_PROBE_KINDS; kind++)
                report_probe_samples(probes, (ProbeKind) kind, each, userdata);
}

void container_probes_dump(const ContainerProbes *probes, FILE *out) {
        for (size_t kind = 0; kind < N_PROBE_KINDS; kind++) {
                static const ProbeWorker never_due = { 0 };
                const ProbeWorker *p = probes->kinds[kind] ? probes->kinds[kind] : &never_due;

                if (!container_probe(probes->container->spec, (ProbeKind) kind))
                        continue;
                dump_line(out, 3, "probe: %s, %s, last result %s, %u in a row, %" PRIu64 " errors",
                          probe_kind_names[kind],
                          p->handler_run ? "running"
                          : p->timer     ? "waiting"
                                         : "stopped",
                          !p->run.has_result ? "none"
                          : p->run.last      ? "success"
                                             : "failure",
                          p->run.n_alike, p->n_errors);
                dump_timer(out, 4, "next probe", p->timer);
        }
        if (probes->has_failed)
                dump_line(out, 3, "probe: the attempt is being killed after a failure");
}
