/* SPDX-License-Identifier: Apache-2.0 */
/* The end of a container, and what is done to it before and after its start: postStart, preStop,
 * the signal.
 *
 * preStop runs within the grace period. The shim is told of the end of that before the hook begins:
 * should nobody be there when the hook is done, the container is stopped all the same. */

#include "agent/bundle/paths.h"
#include "agent/pods/event-recorder.h"
#include "agent/pods/pod-worker-private.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/log.h"

#include <signal.h>

/* What a container has at least between its stop signal and SIGKILL, whatever became of its grace.
 */
#define KILL_GRACE_MIN_USEC (2 * USEC_PER_SEC)

static const struct {
        const char *name;
        const char *reason; /* of the event that one has failed */
} lifecycle_hooks[N_CONTAINER_HOOKS] = {
        [HOOK_POST_START] = { "PostStart", "FailedPostStartHook" },
        [HOOK_PRE_STOP] = { "PreStop", "FailedPreStopHook" },
};

/* From now on. Who is stopped for good has what is left of the pod's, who is killed a grace of his
 * own. */
static uint64_t container_grace_usec(const PodContainer *c, bool for_good) {
        const OptionalInt *pod = &c->pod->pod->spec.termination_grace_period_seconds;
        uint64_t grace, passed = 0;

        if (for_good)
                return pod_worker_remaining_grace_usec(c->pod);
        grace = (uint64_t) MAX(c->kill_grace.is_set ? c->kill_grace.value : pod->value, 1) *
                USEC_PER_SEC;
        if (c->stop_began_at > 0)
                passed = now_boottime_usec() - c->stop_began_at;
        return passed < grace ? grace - passed : 0;
}

static int stop_signal_of(const PodContainer *c) {
        return c->stop_signal > 0 ? c->stop_signal : SIGTERM;
}

void pod_container_stop(void *userdata, unsigned attempt, bool for_good) {
        PodContainer *c = userdata;
        uint64_t grace = container_grace_usec(c, for_good);
        char id[65];

        if (for_good)
                record_pod_event(c->pod, c->spec->name, POD_EVENT_NORMAL, "Killing",
                                 "Stopping container %s", c->spec->name);
        if (c->stop_began_at > 0)
                grace = MAX(grace, KILL_GRACE_MIN_USEC);
        container_id(c->pod->pod->metadata.uid, c->spec->name, attempt, id);
        (void) sandbox_stop_container(c->pod->sandbox, id, stop_signal_of(c), grace);
}

/* From now on, whoever is there or not: the signal at the end of the grace, if it does not come
 * before. */
static void announce_container_stop(PodContainer *c, uint64_t grace) {
        char id[65];

        container_id(c->pod->pod->metadata.uid, c->spec->name,
                     container_machine_attempt(c->machine), id);
        (void) sandbox_stop_container_delayed(c->pod->sandbox, id, stop_signal_of(c), grace,
                                              grace + KILL_GRACE_MIN_USEC);
}

void pod_container_shorten_grace(void *userdata) {
        PodContainer *c = userdata;

        if (c->hook_run && c->hook_kind == HOOK_PRE_STOP)
                announce_container_stop(c, pod_worker_remaining_grace_usec(c->pod));
        else
                pod_container_stop(c, container_machine_attempt(c->machine), /* for_good= */ true);
}

void pod_container_kill(PodContainer *c, const OptionalInt *grace, const char *why) {
        if (!container_machine_can_be_killed(c->machine))
                return; /* who is being stopped keeps the grace that he has */
        c->kill_grace = *grace;
        container_machine_kill(c->machine, why);
        pod_container_update_checkpoint(c);
}

static void on_lifecycle_hook_done(HandlerResult result, const char *message, void *userdata) {
        PodContainer *c = userdata;
        bool is_post_start = c->hook_kind == HOOK_POST_START;
        cleanup_free char *failure = NULL;

        if (result != HANDLER_SUCCEEDED &&
            asprintf(&failure, "%s hook failed: %.1024s", lifecycle_hooks[c->hook_kind].name,
                     message) < 0)
                failure = strdup("a hook failed");
        c->hook_run = handler_run_free(c->hook_run);
        if (failure) {
                log_warning("Pod '%s': container %s: %s", c->pod->description, c->spec->name,
                            failure);
                record_pod_event(c->pod, c->spec->name, POD_EVENT_WARNING,
                                 lifecycle_hooks[c->hook_kind].reason, "%s", failure);
        }
        container_machine_on_hook_done(c->machine, failure);
        if (is_post_start) /* it is done, or killed for its failure */
                pod_container_update_checkpoint(c);
        pod_worker_mark_dirty(c->pod);
}

void pod_container_run_hook(void *userdata, ContainerHook hook, unsigned attempt, bool for_good) {
        PodContainer *c = userdata;
        const Lifecycle *lifecycle = c->spec->lifecycle;
        HandlerRunSpec spec = { .is_hook = true };
        char id[65];
        HandlerTarget target = pod_container_handler_target(c, id);
        int r;

        c->hook_run = handler_run_free(c->hook_run);
        c->hook_kind = hook;
        /* That is quick, and asks nobody. */
        if (hook == HOOK_PRE_STOP && c->pod->restart_all == RESTART_ALL_STOPPING) {
                container_machine_on_hook_done(c->machine, NULL);
                return;
        }
        spec.handler = hook == HOOK_POST_START ? lifecycle->post_start : lifecycle->pre_stop;
        if (hook == HOOK_PRE_STOP) {
                spec.timeout_usec = container_grace_usec(c, for_good);
                c->stop_began_at = now_boottime_usec();
                announce_container_stop(c, spec.timeout_usec);
        }
        r = handler_run_start(&target, &spec, on_lifecycle_hook_done, c, &c->hook_run);
        if (r < 0)
                container_machine_on_hook_done(c->machine, strerror(-r));
}

void pod_container_cancel_hook(void *userdata) {
        PodContainer *c = userdata;

        c->hook_run = handler_run_free(c->hook_run);
}

HandlerTarget pod_container_handler_target(PodContainer *c, char id[65]) {
        PodWorker *pod = c->pod;
        const char *address = pod->attachment ? network_attachment_address(pod->attachment, 0)
                                              : pod->context->host_ip;

        container_id(pod->pod->metadata.uid, c->spec->name, container_machine_attempt(c->machine),
                     id);
        return (HandlerTarget){
                .event = pod->context->event,
                .http = &pod->context->http,
                .sandbox = pod->sandbox,
                .container = c->spec,
                .id = id,
                .address = address ? address : "127.0.0.1",
        };
}
