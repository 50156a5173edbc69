/* SPDX-License-Identifier: Apache-2.0 */
/* The machine goes down: pods are stopped stage by stage, lowest priority first, and none begins.
 * Nothing of it is written down, so that all of them begin at the next boot; and should the machine
 * not go down after all, they do so at once. */

#include "agent/supervise/shutdown.h"
#include "agent/supervise/slot.h"
#include "common/log.h"

static bool is_of_stage(const Supervisor *s, const Slot *slot) {
        return slot->life &&
               shutdown_stage_of(s->stages, s->n_stages,
                                 pod_life_pod(slot->life)->spec.priority.value) == s->stage;
}

static bool stage_runs(const Supervisor *s) {
        for (const Slot *slot = s->slots; slot; slot = slot->following)
                if (is_of_stage(s, slot) && pod_life_has_processes(slot->life))
                        return true;
        return false;
}

static int on_stage_over(sd_event_source *source, uint64_t usec, void *userdata) {
        Supervisor *s = userdata;

        s->stage_timer = sd_event_source_disable_unref(s->stage_timer);
        supervisor_schedule(s);
        return 0;
}

static void stop_stage(Supervisor *s) {
        uint64_t period = s->stages[s->stage].period_usec;
        int r = sd_event_add_time_relative(s->context.event, &s->stage_timer, CLOCK_BOOTTIME,
                                           period, 0, on_stage_over, s);

        if (r < 0)
                (void) log_warning_errno(r, "Cannot arm the timer of the shutdown");
        for (Slot *slot = s->slots; slot; slot = slot->following)
                if (is_of_stage(s, slot))
                        pod_life_shut_down(slot->life, period);
}

void supervisor_follow_shutdown(Supervisor *s) {
        void (*done)(void *userdata) = s->on_shut_down;

        while (s->stage < s->n_stages && (!s->stage_timer || !stage_runs(s))) {
                s->stage_timer = sd_event_source_disable_unref(s->stage_timer);
                if (++s->stage < s->n_stages)
                        stop_stage(s);
        }
        if (s->stage < s->n_stages || !done)
                return;
        s->on_shut_down = NULL;
        done(s->shutdown_userdata);
}

void supervisor_shut_down(Supervisor *s, const ShutdownStage *stages, size_t n_stages,
                          void (*done)(void *userdata), void *userdata) {
        if (s->stages)
                return;
        s->stages = stages;
        s->n_stages = n_stages;
        s->stage = 0;
        s->on_shut_down = done;
        s->shutdown_userdata = userdata;
        if (n_stages > 0)
                stop_stage(s);
        supervisor_schedule(s);
}

void supervisor_go_on(Supervisor *s) {
        s->stages = NULL;
        s->n_stages = s->stage = 0;
        s->stage_timer = sd_event_source_disable_unref(s->stage_timer);
        s->on_shut_down = NULL;
        for (Slot *slot = s->slots; slot; slot = slot->following) {
                slot->was_refused = false;
                if (slot->life)
                        pod_life_go_on(slot->life);
                slot_mark(slot);
        }
}

/* In the kubelet's words. */
void supervisor_refuse(Supervisor *s, Slot *slot) {
        const ObjectMeta *metadata = &slot->next->metadata;
        LogSubject subject = { metadata->namespace, metadata->name, metadata->uid, NULL };
        LOG_ABOUT(&subject);

        if (slot->was_refused)
                return;
        slot->was_refused = true;
        log_warning("Pod '%s' does not begin: the machine goes down", slot->description);
        if (s->callbacks->on_event)
                s->callbacks->on_event(
                        &(PodEvent){ .pod = slot->next,
                                     .kind = POD_EVENT_WARNING,
                                     .reason = "NodeShutdown",
                                     .message = "Pod was rejected as the node is shutting down." },
                        s->userdata);
}
