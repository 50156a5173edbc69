/* SPDX-License-Identifier: Apache-2.0 */
/* Graceful node shutdown: pods are stopped stage by stage, lowest priority first, and none starts.
 * Nothing of it is on disk, so that all pods start at the next boot; after a cancelled shutdown
 * they start at once. */

#include "agent/pods/pod-manager-private.h"
#include "agent/pods/shutdown-stages.h"
#include "common/log.h"

static bool is_in_shutdown_stage(const PodManager *s, const PodEntry *entry) {
        return entry->worker &&
               shutdown_stage_of(s->stages, s->n_stages,
                                 pod_worker_pod(entry->worker)->spec.priority.value) == s->stage;
}

static bool shutdown_stage_has_processes(const PodManager *s) {
        for (const PodEntry *entry = s->entries; entry; entry = entry->next_entry)
                if (is_in_shutdown_stage(s, entry) && pod_worker_has_processes(entry->worker))
                        return true;
        return false;
}

static int on_shutdown_stage_timeout(sd_event_source *source, uint64_t usec, void *userdata) {
        PodManager *s = userdata;

        s->stage_timer = sd_event_source_disable_unref(s->stage_timer);
        pod_manager_schedule_step(s);
        return 0;
}

static void stop_shutdown_stage(PodManager *s) {
        uint64_t period = s->stages[s->stage].period_usec;
        int r = sd_event_add_time_relative(s->context.event, &s->stage_timer, CLOCK_BOOTTIME,
                                           period, 0, on_shutdown_stage_timeout, s);

        if (r < 0)
                (void) log_warning_errno(r, "Cannot arm the timer of the shutdown stage");
        for (PodEntry *entry = s->entries; entry; entry = entry->next_entry)
                if (is_in_shutdown_stage(s, entry))
                        pod_worker_shut_down(entry->worker, period);
}

void pod_manager_continue_shutdown(PodManager *s) {
        void (*done)(void *userdata) = s->on_shut_down;

        while (s->stage < s->n_stages && (!s->stage_timer || !shutdown_stage_has_processes(s))) {
                s->stage_timer = sd_event_source_disable_unref(s->stage_timer);
                if (++s->stage < s->n_stages)
                        stop_shutdown_stage(s);
        }
        if (s->stage < s->n_stages || !done)
                return;
        s->on_shut_down = NULL;
        done(s->shutdown_userdata);
}

void pod_manager_shut_down(PodManager *s, const ShutdownStage *stages, size_t n_stages,
                           void (*done)(void *userdata), void *userdata) {
        if (s->stages)
                return;
        s->stages = stages;
        s->n_stages = n_stages;
        s->stage = 0;
        s->on_shut_down = done;
        s->shutdown_userdata = userdata;
        if (n_stages > 0)
                stop_shutdown_stage(s);
        pod_manager_schedule_step(s);
}

void pod_manager_cancel_shutdown(PodManager *s) {
        s->stages = NULL;
        s->n_stages = s->stage = 0;
        s->stage_timer = sd_event_source_disable_unref(s->stage_timer);
        s->on_shut_down = NULL;
        for (PodEntry *entry = s->entries; entry; entry = entry->next_entry) {
                entry->is_rejection_logged = false;
                if (entry->worker)
                        pod_worker_cancel_shutdown(entry->worker);
                pod_entry_mark_dirty(entry);
        }
}

/* The kubelet's event. */
void pod_manager_reject_for_shutdown(PodManager *s, PodEntry *entry) {
        const ObjectMeta *metadata = &entry->next->metadata;
        LogSubject subject = { metadata->namespace, metadata->name, metadata->uid, NULL };
        LOG_ABOUT(&subject);

        if (entry->is_rejection_logged)
                return;
        entry->is_rejection_logged = true;
        log_warning("Pod '%s' is not started: the machine is shutting down", entry->description);
        if (s->callbacks->on_event)
                s->callbacks->on_event(
                        &(PodEvent){ .pod = entry->next,
                                     .kind = POD_EVENT_WARNING,
                                     .reason = "NodeShutdown",
                                     .message = "Pod was rejected as the node is shutting down." },
                        s->userdata);
}
