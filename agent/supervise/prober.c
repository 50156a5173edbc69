/* SPDX-License-Identifier: Apache-2.0 */
/* When a container is probed, by Kubernetes' rules: the startup probe alone until it has passed;
 * then the others; none while a liveness or startup failure is being acted on; readiness to the
 * end, the other two not once the pod is to go.
 *
 * Each probe has a grid of its own, which begins with the container and from which it does not
 * drift: the first probe comes at its time, the points after it are on the beat. A probe whose time
 * comes while the one before is under way follows at once; those that were missed altogether are
 * not made up for. */

#include "agent/supervise/prober.h"

#include "agent/model/schema.h"
#include "agent/supervise/pod-internal.h"
#include "agent/supervise/tell.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/message-ids.h"

#include <sys/random.h>

/* A few of a thousand probes that are due at nearly the same time may come in one wake-up. */
#define PROBE_ACCURACY_USEC (2 * USEC_PER_MSEC)

/* All grids share it, so that a wake-up serves several probes. A second has a whole number of
 * beats, so no period is another for it. */
#define BEAT_USEC (100 * USEC_PER_MSEC)

/* Of a sentence in the log or the status. */
enum {
        EXCERPT_MAX = 1024,
        BROKEN_SAID = 3, /* as often the kubelet tries before it says so */
};

static ProbeKind kind_of(const Prober *p) {
        return (ProbeKind) (p - p->container->probers.kinds);
}

/* As it is now: a pod may be edited while it runs. */
static const Probe *spec_of(const Prober *p) {
        return probe_of(p->container->spec, kind_of(p));
}

static uint64_t period_usec(const Probe *spec) {
        return (uint64_t) MAX(spec->period_seconds.value, 1) * USEC_PER_SEC;
}

static void begin(Prober *p);

/* The first point of the grid that is not past. */
static void advance(Prober *p, uint64_t now) {
        uint64_t period = p->period_usec;

        p->next_at += period;
        if (p->next_at <= now)
                p->next_at += (now - p->next_at) / period * period + period;
        p->next_at = (p->next_at + BEAT_USEC - 1) / BEAT_USEC * BEAT_USEC;
}

static void arm(Prober *p);

static int on_due(sd_event_source *source, uint64_t usec, void *userdata) {
        Prober *p = userdata;

        if (!spec_of(p)) /* edited away a moment ago */
                return 0;
        advance(p, now_boottime_usec());
        arm(p);
        if (p->action)
                p->is_due = true;
        else
                begin(p);
        return 0;
}

static void arm(Prober *p) {
        int r;

        if (p->timer) {
                r = sd_event_source_set_time(p->timer, p->next_at);
                if (r >= 0)
                        r = sd_event_source_set_enabled(p->timer, SD_EVENT_ONESHOT);
        } else
                r = sd_event_add_time(p->container->pod->context->event, &p->timer, CLOCK_BOOTTIME,
                                      p->next_at, PROBE_ACCURACY_USEC, on_due, p);
        if (r < 0)
                (void) log_error_errno(r, "Cannot arm a probe of '%s/%s'",
                                       p->container->pod->description, p->container->spec->name);
}

static void stop(Prober *p) {
        p->timer = sd_event_source_disable_unref(p->timer);
        p->action = action_free(p->action);
        p->is_on = p->is_due = false;
        p->run = (ProbeRun){ 0 };
        p->n_broken = 0;
}

void probers_stop(PodContainer *c) {
        for (size_t kind = 0; kind < N_PROBE_KINDS; kind++)
                stop(&c->probers.kinds[kind]);
        c->probers.is_begun = false;
}

/* ---- what a result means ---- */

static void set_ready(PodContainer *c, bool is_ready) {
        if (c->probers.is_ready == is_ready)
                return;
        c->probers.is_ready = is_ready;
        log_info("Container '%s/%s' is %s", c->pod->description, c->spec->name,
                 is_ready ? "ready" : "not ready any more");
        pod_container_update_note(c);
        pod_life_mark(c->pod);
}

static void set_started(PodContainer *c) {
        c->probers.has_started = true;
        c->probers.is_adopted = false; /* what is probed from now on is not one of many */
        log_info("Container '%s/%s' has started", c->pod->description, c->spec->name);
        pod_container_update_note(c);
        pod_life_mark(c->pod);
}

/* In the kubelet's words, and with what the probe said. */
static void fail(Prober *p, const char *message) {
        PodContainer *c = p->container;
        RestartPolicy policy = c->spec->restart_policy != RESTART_POLICY_UNSET
                                       ? c->spec->restart_policy
                                       : c->pod->pod->spec.restart_policy;
        const char *outlook = policy == RESTART_POLICY_NEVER ? "" : ", will be restarted";
        cleanup_free char *sentence = NULL;

        if (asprintf(&sentence, "Container %s failed %s probe%s: %.*s", c->spec->name,
                     probe_kind_names[kind_of(p)], outlook, EXCERPT_MAX, message) < 0)
                sentence = NULL;
        c->probers.has_failed = true;
        log_warning("Pod '%s': %s", c->pod->description, strna(sentence));
        event_tell(c->pod, c->spec->name, POD_EVENT_NORMAL, "Killing",
                   "Container %s failed %s probe%s", c->spec->name, probe_kind_names[kind_of(p)],
                   outlook);
        pod_container_kill(c, &spec_of(p)->termination_grace_period_seconds, strna(sentence));
        pod_life_mark(c->pod);
}

static void act_on(Prober *p, ProbeVerdict verdict, const char *message) {
        PodContainer *c = p->container;

        if (verdict == PROBE_UNDECIDED)
                return;
        switch (kind_of(p)) {
        case PROBE_READINESS:
                set_ready(c, verdict == PROBE_PASSED);
                break;
        case PROBE_STARTUP:
                if (verdict == PROBE_PASSED)
                        set_started(c);
                else
                        fail(p, message);
                break;
        case PROBE_LIVENESS:
                if (verdict == PROBE_FAILED)
                        fail(p, message);
                break;
        case N_PROBE_KINDS:
                break;
        }
}

/* An event each time, which costs nobody anything; in the log each turn of the weather, not each
 * drop. */
static void say_result(const Prober *p, bool success, const char *message) {
        LogSubject subject = pod_life_subject(p->container->pod, p->container->spec->name);
        LOG_ABOUT(&subject);

        if (!success)
                event_tell(p->container->pod, p->container->spec->name, POD_EVENT_WARNING,
                           "Unhealthy", "%s probe failed: %.*s", probe_kind_titles[kind_of(p)],
                           EXCERPT_MAX, message);
        if (!success && (!p->run.has_result || p->run.last)) {
                log_mark(MESSAGE_PROBE_FAILED);
                log_info("Pod '%s': container %s: %s probe failed: %.*s",
                         p->container->pod->description, p->container->spec->name,
                         probe_kind_titles[kind_of(p)], EXCERPT_MAX, message);
        }
}

static void say_broken(Prober *p, const char *message) {
        if (++p->n_broken == BROKEN_SAID)
                log_warning("Pod '%s': container %s: %s probe errored: %.*s",
                            p->container->pod->description, p->container->spec->name,
                            probe_kind_titles[kind_of(p)], EXCERPT_MAX, message);
}

static void on_result(ActionResult result, const char *message, void *userdata) {
        Prober *p = userdata;
        cleanup_free char *copy = strdup(message);
        bool success = result == ACTION_SUCCEEDED;

        p->action = action_free(p->action);
        p->n_results[result]++;
        if (!spec_of(p))
                return;
        if (result == ACTION_BROKEN)
                say_broken(p, strna(copy)); /* says nothing of the container */
        else {
                p->n_broken = 0;
                say_result(p, success, strna(copy));
                act_on(p, probe_take(&p->run, spec_of(p), success), strna(copy));
        }
        if (p->is_due && p->is_on)
                begin(p);
}

/* ---- when ---- */

static void begin(Prober *p) {
        PodContainer *c = p->container;
        char id[65];
        ActionTarget target = pod_container_target(c, id);
        int r;

        p->is_due = false;
        if (!c->pod->sandbox)
                return;
        r = action_start(
                &target,
                &(ActionSpec){
                        .handler = &spec_of(p)->handler,
                        .timeout_usec =
                                (uint64_t) MAX(spec_of(p)->timeout_seconds.value, 1) * USEC_PER_SEC,
                },
                on_result, p, &p->action);
        if (r < 0)
                (void) log_error_errno(r, "Cannot probe '%s/%s'", c->pod->description,
                                       c->spec->name);
}

static uint64_t random_below(uint64_t limit) {
        uint64_t n = 0;

        (void) !getrandom(&n, sizeof(n), GRND_NONBLOCK);
        return n % limit;
}

/* From the moment on at which the container started, as far as that is not past; an agent that has
 * just come does not probe all at once. */
static void turn_on(Prober *p) {
        const PodContainer *c = p->container;
        uint64_t now = now_boottime_usec(), age, delay;

        p->is_on = true;
        p->period_usec = period_usec(spec_of(p));
        age = now_realtime_usec() - MIN(container_started_at(c->life), now_realtime_usec());
        delay = (uint64_t) spec_of(p)->initial_delay_seconds.value * USEC_PER_SEC;
        if (c->probers.is_adopted)
                p->next_at = now + MAX(delay > age ? delay - age : 0, random_below(p->period_usec));
        else
                p->next_at = now + (delay > age ? delay - age : 0);
        arm(p);
}

static bool is_wanted(const PodContainer *c, ProbeKind kind) {
        const Probers *all = &c->probers;

        if (!probe_of(c->spec, kind) || !container_is_up(c->life) || !c->pod->sandbox)
                return false;
        if (kind == PROBE_READINESS)
                return all->has_started;
        return (kind == PROBE_STARTUP) != all->has_started && !all->has_failed &&
               c->pod->is_wanted && !container_is_stopping(c->life);
}

/* An attempt begins: nothing is known of it yet. */
static void start_attempt(PodContainer *c) {
        probers_stop(c);
        c->probers.attempt = container_attempt(c->life);
        c->probers.is_begun = true;
        c->probers.is_adopted = false;
        c->probers.has_failed = false;
        c->probers.has_started = !c->spec->startup_probe;
        c->probers.is_ready = !c->spec->readiness_probe;
}

/* What is known is of the present attempt. */
static bool is_known(const PodContainer *c) {
        return c->probers.is_begun && c->probers.attempt == container_attempt(c->life);
}

static void step(PodContainer *c, ProbeKind kind) {
        Prober *p = &c->probers.kinds[kind];
        bool wanted = is_wanted(c, kind);

        p->container = c;
        if (p->is_on && (!wanted || p->period_usec != period_usec(spec_of(p))))
                stop(p);
        if (wanted && !p->is_on)
                turn_on(p);
}

/* An edit may have taken away what was waited for. That it is not any more is noted, for another
 * edit may bring it back. */
static void forgo_removed(PodContainer *c) {
        bool has_started = c->probers.has_started || !c->spec->startup_probe;
        bool is_ready = c->probers.is_ready || !c->spec->readiness_probe;

        if (has_started == c->probers.has_started && is_ready == c->probers.is_ready)
                return;
        c->probers.has_started = has_started;
        c->probers.is_ready = is_ready;
        pod_container_update_note(c);
}

void probers_step(PodContainer *c) {
        if (!container_is_up(c->life)) {
                probers_stop(c);
                return;
        }
        if (!is_known(c))
                start_attempt(c);
        forgo_removed(c);
        for (size_t kind = 0; kind < N_PROBE_KINDS; kind++)
                step(c, (ProbeKind) kind);
}

static bool is_same(const Probe *a, const Probe *b) {
        return a && b && schema_equal(&probe_schema, a, b);
}

void probers_follow(PodContainer *c, const Container *former) {
        for (size_t kind = 0; kind < N_PROBE_KINDS; kind++) {
                Prober *p = &c->probers.kinds[kind];

                /* The next step begins it. What is under way otherwise has its own handler. */
                if (p->is_on && !is_same(probe_of(former, (ProbeKind) kind), spec_of(p)))
                        stop(p);
        }
}

void probers_adopt(PodContainer *c, bool has_started, bool is_ready) {
        start_attempt(c);
        c->probers.is_adopted = true;
        c->probers.has_started = c->probers.has_started || has_started;
        c->probers.is_ready = c->probers.is_ready || is_ready;
}

bool probers_handle(PodContainer *c, const SandboxEvent *event) {
        for (size_t kind = 0; kind < N_PROBE_KINDS; kind++)
                if (action_handle(c->probers.kinds[kind].action, event))
                        return true;
        return false;
}

bool probers_have_started(const PodContainer *c) {
        return is_known(c) ? c->probers.has_started : !c->spec->startup_probe;
}

bool probers_are_passed(const PodContainer *c) {
        return is_known(c) ? c->probers.is_ready : !c->spec->readiness_probe;
}

bool probers_are_ready(const PodContainer *c) {
        return probers_have_started(c) && probers_are_passed(c);
}
