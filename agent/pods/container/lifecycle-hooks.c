/* SPDX-License-Identifier: Apache-2.0 */
/* Runs postStart and preStop with probe/handler-run.h, and passes the result to the state machine.
 */

#include "agent/pods/container/lifecycle-hooks.h"

#include "agent/pods/pod/event-recorder.h"
#include "common/cleanup.h"
#include "common/log.h"
#include "common/text.h"

static const struct {
        const char *name;
        const char *failure_reason; /* reason of the event */
} lifecycle_hooks[N_LIFECYCLE_HOOKS] = {
        [HOOK_POST_START] = { "PostStart", "FailedPostStartHook" },
        [HOOK_PRE_STOP] = { "PreStop", "FailedPreStopHook" },
};

/* The message, which the caller frees, or NULL. */
static char *report_failed_hook(const LifecycleHooks *hooks, const char *message) {
        const ContainerInstance *c = hooks->container;
        char *failure =
                text_format("%s hook failed: %.1024s", lifecycle_hooks[hooks->kind].name, message);

        log_warning("Pod '%s': container %s: %s", c->pod->description, c->spec->name,
                    strna(failure));
        record_pod_event(c->pod, c->spec->name, POD_EVENT_WARNING,
                         lifecycle_hooks[hooks->kind].failure_reason, "%s", strna(failure));
        return failure;
}

static void on_lifecycle_hook_done(HandlerResult result, const char *message, void *userdata) {
        LifecycleHooks *hooks = userdata;
        const ContainerInstance *c = hooks->container;
        bool is_post_start = hooks->kind == HOOK_POST_START;
        LogSubject subject = pod_instance_log_subject(c->pod, c->spec->name);
        cleanup_free char *failure = NULL;
        LOG_ABOUT(&subject);

        if (result != HANDLER_SUCCEEDED)
                failure = report_failed_hook(hooks, message);
        lifecycle_hooks_cancel(hooks);
        if (failure && is_post_start) /* with the kubelet's message */
                record_pod_event(c->pod, c->spec->name, POD_EVENT_NORMAL, "Killing",
                                 "FailedPostStartHook");
        container_machine_on_hook_done(c->machine, failure);
        if (is_post_start)
                hooks->on_post_start_done(hooks->userdata);
}

void lifecycle_hooks_run(LifecycleHooks *hooks, LifecycleHook hook, const ContainerStop *stop) {
        const ContainerInstance *c = hooks->container;
        const Lifecycle *lifecycle = c->spec->lifecycle;
        HandlerRunSpec spec = { .is_hook = true };
        char id[CONTAINER_ID_SIZE];
        HandlerTarget target = container_instance_handler_target(c, id);
        int r;

        lifecycle_hooks_cancel(hooks);
        hooks->kind = hook;
        spec.handler = hook == HOOK_POST_START ? lifecycle->post_start : lifecycle->pre_stop;
        if (hook == HOOK_PRE_STOP)
                spec.timeout_usec = container_stop_begin_pre_stop(hooks->stopper, stop);
        r = handler_run_start(&target, &spec, on_lifecycle_hook_done, hooks, &hooks->run);
        if (r < 0)
                container_machine_on_hook_done(c->machine, strerror(-r));
}

void lifecycle_hooks_abandon(LifecycleHooks *hooks) {
        if (hooks->run && hooks->kind == HOOK_PRE_STOP)
                free(report_failed_hook(hooks, "the container ended before it"));
        lifecycle_hooks_cancel(hooks);
}

void lifecycle_hooks_cancel(LifecycleHooks *hooks) {
        hooks->run = handler_run_free(hooks->run);
}
