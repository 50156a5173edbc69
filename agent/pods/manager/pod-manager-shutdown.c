/* SPDX-License-Identifier: Apache-2.0 */
/* Graceful node shutdown: pods are stopped stage by stage, starting with the lowest priority;
 * within a stage, a pod stops before the pods in its annotation mainstay.dev/after; no pod starts.
 * None of this is recorded on disk, so all pods start at the next boot; after a cancelled shutdown
 * they start immediately. */

#include "agent/pods/manager/pod-manager-private.h"
#include "agent/pods/manager/shutdown-stages.h"
#include "common/clock.h"
#include "common/log.h"

static bool is_in_shutdown_stage(const PodManager *manager, const PodEntry *entry) {
        return entry->worker &&
               shutdown_stage_of(manager->stages, manager->n_stages,
                                 pod_worker_pod(entry->worker)->spec.priority.value) ==
                       manager->stage;
}

static bool is_in_shutdown_step(const PodManager *manager, const PodEntry *entry) {
        return is_in_shutdown_stage(manager, entry) && entry->stop_step <= manager->step;
}

static bool shutdown_step_has_processes(const PodManager *manager) {
        for (const PodEntry *entry = manager->entries; entry; entry = entry->next_entry)
                if (is_in_shutdown_step(manager, entry) && pod_worker_has_processes(entry->worker))
                        return true;
        return false;
}

static int on_shutdown_stage_timeout(sd_event_source *source, uint64_t usec, void *userdata) {
        PodManager *manager = userdata;

        manager->stage_timer = sd_event_source_disable_unref(manager->stage_timer);
        pod_manager_schedule_step(manager);
        return 0;
}

/* The steps of a stage share its time equally. */
static void stop_shutdown_step(PodManager *manager) {
        uint64_t period = manager->stages[manager->stage].period_usec / manager->n_steps;
        int r = sd_event_add_time_relative(manager->context.event, &manager->stage_timer,
                                           CLOCK_AWAKE, period, 0, on_shutdown_stage_timeout,
                                           manager);

        if (r < 0)
                (void) log_warning_errno(r, "Cannot arm the timer of the shutdown stage");
        for (PodEntry *entry = manager->entries; entry; entry = entry->next_entry)
                if (is_in_shutdown_step(manager, entry))
                        pod_worker_shut_down(entry->worker, period);
}

static void stop_shutdown_stage(PodManager *manager) {
        manager->step = 0;
        manager->n_steps = pod_manager_choose_stop_steps(manager, is_in_shutdown_stage);
        stop_shutdown_step(manager);
}

static void stop_next_step(PodManager *manager) {
        manager->stage_timer = sd_event_source_disable_unref(manager->stage_timer);
        if (++manager->step < manager->n_steps)
                stop_shutdown_step(manager);
        else if (++manager->stage < manager->n_stages)
                stop_shutdown_stage(manager);
}

void pod_manager_continue_shutdown(PodManager *manager) {
        void (*done)(void *userdata) = manager->on_shut_down;

        while (manager->stage < manager->n_stages &&
               (!manager->stage_timer || !shutdown_step_has_processes(manager)))
                stop_next_step(manager);
        if (manager->stage < manager->n_stages || !done)
                return;
        manager->on_shut_down = NULL;
        done(manager->shutdown_userdata);
}

void pod_manager_shut_down(PodManager *manager, const ShutdownStage *stages, size_t n_stages,
                           void (*done)(void *userdata), void *userdata) {
        if (manager->stages)
                return;
        manager->stages = stages;
        manager->n_stages = n_stages;
        manager->stage = 0;
        manager->on_shut_down = done;
        manager->shutdown_userdata = userdata;
        if (n_stages > 0)
                stop_shutdown_stage(manager);
        pod_manager_schedule_step(manager);
}

bool pod_manager_is_shutting_down(const PodManager *manager) {
        return manager->stages != NULL;
}

void pod_manager_cancel_shutdown(PodManager *manager) {
        manager->stages = NULL;
        manager->n_stages = manager->stage = 0;
        manager->stage_timer = sd_event_source_disable_unref(manager->stage_timer);
        manager->on_shut_down = NULL;
        for (PodEntry *entry = manager->entries; entry; entry = entry->next_entry) {
                entry->is_rejection_logged = false;
                if (entry->worker)
                        pod_worker_cancel_shutdown(entry->worker);
                pod_entry_mark_dirty(entry);
        }
}

/* The kubelet's event. */
void pod_manager_reject_for_shutdown(PodManager *manager, PodEntry *entry) {
        const ObjectMeta *metadata = &entry->next->metadata;
        LogSubject subject = { metadata->namespace, metadata->name, metadata->uid, NULL };
        LOG_ABOUT(&subject);

        if (entry->is_rejection_logged)
                return;
        entry->is_rejection_logged = true;
        log_warning("Pod '%s' is not started: the machine is shutting down", entry->description);
        if (manager->callbacks->on_event)
                manager->callbacks->on_event(
                        &(PodEvent){ .pod = entry->next,
                                     .kind = POD_EVENT_WARNING,
                                     .reason = "NodeShutdown",
                                     .message = "Pod was rejected as the node is shutting down." },
                        manager->userdata);
}
