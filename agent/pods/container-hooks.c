/* SPDX-License-Identifier: Apache-2.0 */
/* preStop runs within the grace period. The shim learns the end of that period before the hook
 * starts: should the agent be gone when the hook ends, the container is stopped all the same. */

#include "agent/pods/container-hooks.h"

#include "agent/bundle/paths.h"
#include "agent/pods/event-recorder.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/log.h"

#include <signal.h>

/* The least time between the stop signal and SIGKILL after a preStop hook. */
#define KILL_GRACE_MIN_USEC (2 * USEC_PER_SEC)

static const struct {
        const char *name;
        const char *failure_reason; /* of the event */
} lifecycle_hooks[N_CONTAINER_HOOKS] = {
        [HOOK_POST_START] = { "PostStart", "FailedPostStartHook" },
        [HOOK_PRE_STOP] = { "PreStop", "FailedPreStopHook" },
};

/* From now on. A container that is stopped for good has the rest of the pod's grace period, one
 * that is killed may have its own. */
static uint64_t container_grace_usec(const ContainerHooks *hooks, const ContainerStop *stop) {
        const OptionalInt *pod = &hooks->container->pod->pod->spec.termination_grace_period_seconds;
        uint64_t grace, passed = 0;

        if (stop->for_good)
                return stop->pod_grace_usec;
        grace = (uint64_t) MAX(hooks->kill_grace.is_set ? hooks->kill_grace.value : pod->value, 1) *
                USEC_PER_SEC;
        if (hooks->pre_stop_began_at > 0)
                passed = now_boottime_usec() - hooks->pre_stop_began_at;
        return passed < grace ? grace - passed : 0;
}

static int signal_of_stop(const ContainerStop *stop) {
        return stop->signal > 0 ? stop->signal : SIGTERM;
}

void container_hooks_reset(ContainerHooks *hooks) {
        hooks->pre_stop_began_at = 0;
        hooks->kill_grace = (OptionalInt){ 0 };
}

void container_hooks_stop(ContainerHooks *hooks, const ContainerStop *stop) {
        const ContainerInstance *c = hooks->container;
        uint64_t grace = container_grace_usec(hooks, stop);
        char id[CONTAINER_ID_SIZE];

        if (stop->for_good)
                record_pod_event(c->pod, c->spec->name, POD_EVENT_NORMAL, "Killing",
                                 "Stopping container %s", c->spec->name);
        if (hooks->pre_stop_began_at > 0)
                grace = MAX(grace, KILL_GRACE_MIN_USEC);
        container_id(c->pod->pod->metadata.uid, c->spec->name, stop->attempt, id);
        (void) sandbox_stop_container(c->pod->sandbox, id, signal_of_stop(stop), grace);
}

/* The shim sends the stop signal at the end of the grace period unless the agent does so before. */
static void schedule_container_stop(const ContainerHooks *hooks, const ContainerStop *stop,
                                    uint64_t grace) {
        char id[CONTAINER_ID_SIZE];

        container_instance_print_id(hooks->container, id);
        (void) sandbox_stop_container_delayed(hooks->container->pod->sandbox, id,
                                              signal_of_stop(stop), grace,
                                              grace + KILL_GRACE_MIN_USEC);
}

void container_hooks_shorten_grace(ContainerHooks *hooks, const ContainerStop *stop) {
        if (hooks->run && hooks->kind == HOOK_PRE_STOP)
                schedule_container_stop(hooks, stop, stop->pod_grace_usec);
        else
                container_hooks_stop(hooks, stop);
}

bool container_hooks_kill(ContainerHooks *hooks, const OptionalInt *grace, const char *why) {
        ContainerMachine *machine = hooks->container->machine;

        if (!container_machine_can_be_killed(machine))
                return false;
        hooks->kill_grace = *grace;
        container_machine_kill(machine, why);
        return true;
}

static void on_lifecycle_hook_done(HandlerResult result, const char *message, void *userdata) {
        ContainerHooks *hooks = userdata;
        const ContainerInstance *c = hooks->container;
        bool is_post_start = hooks->kind == HOOK_POST_START;
        cleanup_free char *failure = NULL;

        if (result != HANDLER_SUCCEEDED && asprintf(&failure, "%s hook failed: %.1024s",
                                                    lifecycle_hooks[hooks->kind].name, message) < 0)
                failure = strdup("a hook failed");
        container_hooks_cancel(hooks);
        if (failure) {
                log_warning("Pod '%s': container %s: %s", c->pod->description, c->spec->name,
                            failure);
                record_pod_event(c->pod, c->spec->name, POD_EVENT_WARNING,
                                 lifecycle_hooks[hooks->kind].failure_reason, "%s", failure);
        }
        container_machine_on_hook_done(c->machine, failure);
        if (is_post_start)
                hooks->on_post_start_done(hooks->userdata);
        pod_instance_mark_dirty(c->pod);
}

void container_hooks_run(ContainerHooks *hooks, ContainerHook hook, const ContainerStop *stop) {
        const ContainerInstance *c = hooks->container;
        const Lifecycle *lifecycle = c->spec->lifecycle;
        HandlerRunSpec spec = { .is_hook = true };
        char id[CONTAINER_ID_SIZE];
        HandlerTarget target = container_instance_handler_target(c, id);
        int r;

        container_hooks_cancel(hooks);
        hooks->kind = hook;
        spec.handler = hook == HOOK_POST_START ? lifecycle->post_start : lifecycle->pre_stop;
        if (hook == HOOK_PRE_STOP) {
                spec.timeout_usec = container_grace_usec(hooks, stop);
                hooks->pre_stop_began_at = now_boottime_usec();
                schedule_container_stop(hooks, stop, spec.timeout_usec);
        }
        r = handler_run_start(&target, &spec, on_lifecycle_hook_done, hooks, &hooks->run);
        if (r < 0)
                container_machine_on_hook_done(c->machine, strerror(-r));
}

void container_hooks_cancel(ContainerHooks *hooks) {
        hooks->run = handler_run_free(hooks->run);
}
