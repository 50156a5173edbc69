/* SPDX-License-Identifier: Apache-2.0 */
/* An edit of a running pod. The plan (model/edit-plan.h) determines the steps. Changes that can be
 * applied in place are recorded first, then made: an agent that dies in between leaves a record
 * that the next one applies. An edit that replaces the pod is pre-flighted first; the running pod
 * is deleted only when its successor could start, and the successor starts in the step in which the
 * running pod is gone. */

#include "agent/pods/manager/pod-manager-private.h"
#include "agent/pods/manager/pod-record.h"
#include "agent/pods/pod/pod-edit.h"
#include "agent/pods/pod/pod-preemption.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/fsync-queue.h"
#include "common/log.h"
#include "common/text.h"

#include <inttypes.h>

/* A record that cannot be written is retried after this time. */
#define STORE_RETRY_USEC (5 * USEC_PER_SEC)

int pod_entry_store_record(PodManager *manager, const PodEntry *entry, const Pod *pod,
                           const PodSource *source, const char *outdated, Error *reterr) {
        cleanup_free char *present = NULL;
        PodRecord record = {
                .source = *source,
                .pod = (Pod *) (uintptr_t) pod,
                .outdated = (char *) (uintptr_t) outdated,
        };
        int r;

        if (!outdated && entry->worker) {
                present = pod_worker_print_outdated(entry->worker, NULL);
                if (!present)
                        return -ENOMEM;
                record.outdated = present;
        }
        r = pod_record_store(manager->context.bundle->state_dir, &record, reterr);
        if (r < 0)
                return r;
        fsync_queue_add(manager->context.state_sync, pod->metadata.uid);
        return r;
}

void pod_entry_forget_next(PodEntry *entry) {
        entry->preflight = preflight_free(entry->preflight);
        entry->next = pod_free(entry->next);
        pod_source_done(&entry->next_source);
        entry->retry_delay_usec = 0;
        entry->retry_timer = sd_event_source_disable_unref(entry->retry_timer);
        if (entry->worker)
                pod_worker_set_edit_error(entry->worker, NULL);
}

static int on_pod_entry_retry(sd_event_source *source, uint64_t usec, void *userdata) {
        PodEntry *entry = userdata;

        entry->retry_timer = sd_event_source_disable_unref(entry->retry_timer);
        if (entry->preflight)
                preflight_retry(entry->preflight);
        pod_entry_mark_dirty(entry);
        return 0;
}

void pod_entry_mark_dirty_later(PodEntry *entry, uint64_t delay_usec) {
        int r;

        entry->retry_timer = sd_event_source_disable_unref(entry->retry_timer);
        r = sd_event_add_time_relative(entry->manager->context.event, &entry->retry_timer,
                                       CLOCK_BOOTTIME, delay_usec, 0, on_pod_entry_retry, entry);
        if (r >= 0)
                return;
        (void) log_error_errno(r, "Cannot arm the retry timer of pod '%s'; retrying at once",
                               entry->description);
        pod_entry_mark_dirty(entry);
}

void pod_entry_retry_preflight(PodEntry *entry) {
        preflight_retry(entry->preflight);
        pod_entry_mark_dirty(entry);
}

/* ---- in place ---- */

static int apply_edit_in_place(PodManager *manager, PodEntry *entry, const EditPlan *plan,
                               Error *reterr) {
        cleanup_free char *outdated = pod_worker_print_outdated(entry->worker, plan);
        int r;

        if (!outdated)
                return -ENOMEM;
        r = edit_inherit_pod_identity(pod_worker_pod(entry->worker), entry->next);
        if (r < 0)
                return r;
        r = pod_entry_store_record(manager, entry, entry->next, &entry->next_source, outdated,
                                   reterr);
        if (r < 0)
                return r;
        pod_source_done(&entry->source);
        entry->source = entry->next_source;
        entry->next_source = (PodSource){ 0 };
        pod_worker_apply_edit_take(entry->worker, TAKE_PTR(entry->next), plan);
        pod_entry_forget_next(entry);
        manager->qos_is_due = true;
        return 0;
}

static void apply_edit_or_retry(PodManager *manager, PodEntry *entry, const EditPlan *plan) {
        cleanup_error Error error = ERROR_NULL;
        int r = apply_edit_in_place(manager, entry, plan, &error);

        if (r >= 0)
                return;
        pod_worker_set_edit_error(entry->worker, error_message(&error, r));
        pod_entry_mark_dirty_later(entry, STORE_RETRY_USEC);
}

/* ---- replacement ---- */

/* The pod that currently has the name has lower trust. */
static void displace_by_next(PodEntry *entry) {
        pod_worker_displace(entry->worker, NAME_CONFLICT_REASON, NAME_CONFLICT_MESSAGE);
        if (pod_worker_is_desired(entry->worker))
                pod_worker_delete(entry->worker, -1, NAME_CONFLICT_MESSAGE);
}

/* Pods of the API server, and pods that are being stopped, are removed even before their successor
 * could start. */
static bool must_displace(const PodEntry *entry) {
        return pod_source_outranks(&entry->next_source, &entry->source) &&
               (!pod_source_is_manifest(&entry->source) || !pod_worker_is_desired(entry->worker));
}

static void on_preflight_changed(void *userdata) {
        pod_entry_mark_dirty(userdata);
}

static void stop_replaced_pod(PodEntry *entry, const char *why) {
        cleanup_free char *reason = text_format("replaced because %s changed: %s",
                                                pod_source_describe(&entry->next_source), why);

        pod_worker_set_edit_error(entry->worker, NULL);
        entry->retry_timer = sd_event_source_disable_unref(entry->retry_timer);
        if (pod_source_outranks(&entry->next_source, &entry->source))
                pod_worker_displace(entry->worker, NAME_CONFLICT_REASON, NAME_CONFLICT_MESSAGE);
        /* The deletion is recorded on disk, because a restarted agent must not start the pod
         * either. */
        pod_worker_delete(entry->worker, -1, reason);
}

static void wait_for_replacement(PodManager *manager, PodEntry *entry, const char *reasons,
                                 const char *error) {
        cleanup_free char *message =
                text_format("the successor (changed: %s) cannot start: %s", reasons, error);

        pod_worker_set_edit_error(entry->worker, strna(message));
        if (entry->retry_timer)
                return; /* not due yet; a pod is also stepped for other reasons */
        entry->retry_delay_usec =
                back_off_next_delay(entry->retry_delay_usec, &manager->context.back_off);
        pod_entry_mark_dirty_later(entry, entry->retry_delay_usec);
}

static int check_host_ports_of_next(const PodManager *manager, const PodEntry *entry,
                                    Error *reterr) {
        HostPortHolder holder;
        int r;

        if (!manager->context.find_port_holder(entry->next, &holder, manager->context.userdata))
                return 0;
        if (holder.is_outranked) {
                free(holder.path);
                return 0;
        }
        r = error_setf(reterr, EADDRINUSE,
                       "%s: port %" PRId64 " of the host is in use by pod %s/%s", holder.path,
                       holder.port->host_port.value, holder.pod->metadata.namespace,
                       holder.pod->metadata.name);
        free(holder.path);
        return r;
}

/* 1: the next pod could start; 0: images are being pulled; -errno: it could not. */
static int check_replacement(PodManager *manager, PodEntry *entry, Error *reterr) {
        int r = 0;

        if (!entry->preflight)
                r = preflight_new(&manager->context, entry->next, on_preflight_changed, entry,
                                  &entry->preflight);
        if (r < 0)
                return r;
        r = check_host_ports_of_next(manager, entry, reterr);
        if (r < 0)
                return r;
        return preflight_step(entry->preflight, reterr);
}

static void preflight_replacement(PodManager *manager, PodEntry *entry, const EditPlan *plan) {
        cleanup_free char *reasons = edit_print_replace_reasons(plan);
        cleanup_error Error error = ERROR_NULL;
        int r;

        /* Nothing is lost by stopping the pod, and the successor's problem is better shown in its
         * own status. */
        if (pod_worker_has_terminated(entry->worker) || !pod_worker_has_started(entry->worker)) {
                stop_replaced_pod(entry, strna(reasons));
                return;
        }
        r = check_replacement(manager, entry, &error);
        if (r > 0)
                stop_replaced_pod(entry, strna(reasons));
        else if (r < 0)
                wait_for_replacement(manager, entry, strna(reasons), error_message(&error, r));
}

void pod_entry_apply_edit(PodManager *manager, PodEntry *entry) {
        cleanup_with(edit_plan_done) EditPlan plan = { 0 };
        int r;

        if (must_displace(entry)) {
                displace_by_next(entry);
                return;
        }
        if (!pod_worker_is_editable(entry->worker))
                return; /* applied when the old pod is gone, or its attempts are known */
        r = edit_plan_make(pod_worker_pod(entry->worker), entry->next, &plan);
        if (r < 0) {
                pod_entry_mark_dirty_later(entry, STORE_RETRY_USEC);
                return;
        }
        switch (plan.effect) {
        case EDIT_NONE:
                pod_entry_forget_next(entry);
                break;
        case EDIT_RESTART_CONTAINER:
                if (pod_worker_has_terminated(entry->worker))
                        stop_replaced_pod(entry, "it had terminated");
                else
                        apply_edit_or_retry(manager, entry, &plan);
                break;
        case EDIT_IN_PLACE:
                if (pod_worker_has_failed(entry->worker))
                        stop_replaced_pod(entry, "it had failed");
                else
                        apply_edit_or_retry(manager, entry, &plan);
                break;
        case EDIT_RECREATE_POD:
                preflight_replacement(manager, entry, &plan);
                break;
        case N_EDIT_EFFECTS:
                break;
        }
}
