/* SPDX-License-Identifier: Apache-2.0 */
/* Computes the rest of the grace period, and requests the stop signal and SIGKILL from the shim. */

#include "agent/pods/container-stop.h"

#include "agent/bundle/paths.h"
#include "agent/pods/event-recorder.h"
#include "common/clock.h"

#include <signal.h>

/* The least time between the stop signal and SIGKILL after a preStop hook (kubelet:
 * minimumGracePeriodInSeconds). */
#define KILL_GRACE_MIN_USEC (2 * USEC_PER_SEC)

/* From now on. A container that is stopped for good has the rest of the pod's grace period, one
 * that is killed may have its own. */
static uint64_t container_remaining_grace_usec(const ContainerStopper *stopper,
                                               const ContainerStop *stop) {
        const Pod *pod = stopper->container->pod->pod;
        const OptionalInt *period = stopper->kill_grace.is_set
                                            ? &stopper->kill_grace
                                            : &pod->spec.termination_grace_period_seconds;
        uint64_t grace, passed = 0;

        /* The pod's clock started before its preStop hooks: see pod_remaining_grace_usec(). */
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

static void record_killing(const ContainerInstance *c, const ContainerStop *stop) {
        if (stop->for_good)
                record_pod_event(c->pod, c->spec->name, POD_EVENT_NORMAL, "Killing",
                                 "Stopping container %s", c->spec->name);
}

void container_stop(ContainerStopper *stopper, const ContainerStop *stop) {
        const ContainerInstance *c = stopper->container;
        uint64_t grace = container_remaining_grace_usec(stopper, stop);
        char id[CONTAINER_ID_SIZE];

        if (!stopper->is_killing_reported)
                record_killing(c, stop);
        stopper->is_killing_reported = false;
        if (stopper->pre_stop_started_at > 0)
                grace = MAX(grace, KILL_GRACE_MIN_USEC);
        container_id(c->pod->pod->metadata.uid, c->spec->name, stop->attempt, id);
        (void) sandbox_stop_container(c->pod->sandbox, id, signal_of_stop(stop), grace);
}

/* The shim sends the stop signal at the end of the grace period unless the agent does so before. */
static void schedule_container_stop(const ContainerStopper *stopper, const ContainerStop *stop,
                                    uint64_t grace) {
        char id[CONTAINER_ID_SIZE];

        container_instance_print_id(stopper->container, id);
        (void) sandbox_stop_container_delayed(stopper->container->pod->sandbox, id,
                                              signal_of_stop(stop), grace,
                                              grace + KILL_GRACE_MIN_USEC);
}

/* With the event, which precedes the hook as with the kubelet. */
static void schedule_stop_after_pre_stop(ContainerStopper *stopper, const ContainerStop *stop,
                                         uint64_t grace) {
        record_killing(stopper->container, stop);
        stopper->is_killing_reported = stop->for_good;
        schedule_container_stop(stopper, stop, grace);
}

uint64_t container_stop_begin_pre_stop(ContainerStopper *stopper, const ContainerStop *stop) {
        uint64_t grace = container_remaining_grace_usec(stopper, stop);

        stopper->pre_stop_started_at = now_awake_usec();
        schedule_stop_after_pre_stop(stopper, stop, grace);
        return grace;
}

void container_stop_shorten_grace(ContainerStopper *stopper, const ContainerStop *stop,
                                  bool pre_stop_is_running) {
        if (pre_stop_is_running)
                schedule_stop_after_pre_stop(stopper, stop, stop->pod_grace_usec);
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
