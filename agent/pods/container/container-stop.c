/* SPDX-License-Identifier: Apache-2.0 */
/* Computes the rest of the grace period, and requests the stop signal and SIGKILL from the shim. */

#include "agent/pods/container/container-stop.h"

#include "agent/bundle/pod-paths.h"
#include "agent/pods/pod/event-recorder.h"
#include "common/clock.h"

#include <signal.h>

/* Minimum time between the stop signal and SIGKILL (kubelet: minimumGracePeriodInSeconds). */
#define KILL_GRACE_MIN_USEC (2 * USEC_PER_SEC)

/* Counted from now. A container that is stopped permanently gets the rest of the pod's grace
 * period; a container that is only killed may have its own. */
static uint64_t container_remaining_grace_usec(const ContainerStopper *stopper,
                                               const ContainerStop *stop) {
        const Pod *pod = stopper->container->pod->pod;
        const OptionalInt *period = stopper->kill_grace.is_set
                                            ? &stopper->kill_grace
                                            : &pod->spec.termination_grace_period_seconds;
        uint64_t grace, passed = 0;

        /* The pod's time started before its preStop hooks: see pod_remaining_grace_usec(). */
        if (stop->for_good)
                return stop->pod_grace_usec;
        grace = (uint64_t) MAX(period->value, 1) * USEC_PER_SEC;
        if (stopper->pre_stop_started_at > 0)
                passed = now_awake_usec() - stopper->pre_stop_started_at;
        return passed < grace ? grace - passed : 0;
}

static int signal_of_stop(const ContainerStop *stop) {
        return stop->signal > 0 ? stop->signal : SIGTERM;
}

void container_stopper_reset(ContainerStopper *stopper) {
        stopper->pre_stop_started_at = 0;
        stopper->is_killing_reported = false;
        stopper->kill_grace = (OptionalInt){ 0 };
}

/* The kubelet also emits this event when the stop begins, before the hook and before the
 * container's turn. */
static void record_killing(ContainerStopper *stopper, const ContainerStop *stop) {
        const ContainerInstance *c = stopper->container;

        if (stop->for_good && !stopper->is_killing_reported)
                record_pod_event(c->pod, c->spec->name, POD_EVENT_NORMAL, "Killing",
                                 "Stopping container %s", c->spec->name);
        stopper->is_killing_reported = stopper->is_killing_reported || stop->for_good;
}

void container_stop(ContainerStopper *stopper, const ContainerStop *stop) {
        const ContainerInstance *c = stopper->container;
        uint64_t grace = container_remaining_grace_usec(stopper, stop);
        char id[CONTAINER_ID_SIZE];

        record_killing(stopper, stop);
        container_id(c->pod->pod->metadata.uid, c->spec->name, stop->attempt, id);
        (void) sandbox_stop_container(c->pod->sandbox, id, signal_of_stop(stop),
                                      MAX(grace, KILL_GRACE_MIN_USEC));
}

/* The shim sends the stop signal at the end of the grace period unless the agent does so before. */
static void schedule_container_stop(ContainerStopper *stopper, const ContainerStop *stop,
                                    uint64_t grace) {
        char id[CONTAINER_ID_SIZE];

        record_killing(stopper, stop);
        container_instance_print_id(stopper->container, id);
        (void) sandbox_stop_container_delayed(stopper->container->pod->sandbox, id,
                                              signal_of_stop(stop), grace,
                                              grace + KILL_GRACE_MIN_USEC);
}

uint64_t container_stop_begin_pre_stop(ContainerStopper *stopper, const ContainerStop *stop) {
        uint64_t grace = container_remaining_grace_usec(stopper, stop);

        stopper->pre_stop_started_at = now_awake_usec();
        schedule_container_stop(stopper, stop, grace);
        return grace;
}

void container_stop_shorten_grace(ContainerStopper *stopper, const ContainerStop *stop,
                                  bool is_signal_held) {
        if (is_signal_held)
                schedule_container_stop(stopper, stop, stop->pod_grace_usec);
        else
                container_stop(stopper, stop);
}

bool container_stop_kill(ContainerStopper *stopper, const OptionalInt *grace, const char *why) {
        ContainerMachine *machine = stopper->container->machine;

        if (!container_machine_can_be_killed(machine))
                return false;
        stopper->kill_grace = *grace;
        container_machine_kill(machine, why);
        return true;
}
