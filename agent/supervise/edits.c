/* SPDX-License-Identifier: Apache-2.0 */
/* An edit of a pod that runs. The plan (model/edit.h) says what it takes. What can be applied is
 * recorded, then done: an agent that dies in between leaves a record by which the next one goes on.
 * What replaces the pod is staged first; only when the successor could begin is the one that runs
 * told to end, on disk too, and when it has ended the successor begins in the same step. */

#include "agent/supervise/record.h"
#include "agent/supervise/slot.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/dir-sync.h"
#include "common/log.h"

/* A record that cannot be written is tried again after this. */
#define STORE_RETRY_USEC (5 * USEC_PER_SEC)

int slot_store(Supervisor *s, const Slot *slot, const Pod *pod, const char *file,
               const char *outdated, Error *reterr) {
        cleanup_free char *present = NULL;
        Record record = {
                .file = (char *) (uintptr_t) file,
                .pod = (Pod *) (uintptr_t) pod,
                .outdated = (char *) (uintptr_t) outdated,
        };
        int r;

        if (!outdated && slot->life) {
                present = pod_life_print_outdated(slot->life, NULL);
                if (!present)
                        return -ENOMEM;
                record.outdated = present;
        }
        r = record_store(s->context.bundle->state_dir, &record, reterr);
        if (r >= 0)
                dir_sync_mark(s->context.disk, pod->metadata.uid);
        return r;
}

void slot_forget_next(Slot *slot) {
        slot->staging = staging_free(slot->staging);
        slot->next = pod_free(slot->next);
        free(slot->next_file);
        slot->next_file = NULL;
        slot->retry_delay_usec = 0;
        slot->retry_timer = sd_event_source_disable_unref(slot->retry_timer);
        if (slot->life)
                pod_life_set_edit_trouble(slot->life, NULL);
}

static int on_retry(sd_event_source *source, uint64_t usec, void *userdata) {
        Slot *slot = userdata;

        slot->retry_timer = sd_event_source_disable_unref(slot->retry_timer);
        if (slot->staging)
                staging_retry(slot->staging);
        slot_mark(slot);
        return 0;
}

void slot_mark_later(Slot *slot, uint64_t delay_usec) {
        int r;

        slot->retry_timer = sd_event_source_disable_unref(slot->retry_timer);
        r = sd_event_add_time_relative(slot->supervisor->context.event, &slot->retry_timer,
                                       CLOCK_BOOTTIME, delay_usec, 0, on_retry, slot);
        if (r < 0)
                (void) log_error_errno(r, "Cannot arm the timer of pod '%s'", slot->description);
}

void slot_retry_staging(Slot *slot) {
        staging_retry(slot->staging);
        slot_mark(slot);
}

/* ---- in place ---- */

static int apply(Supervisor *s, Slot *slot, const EditPlan *plan, Error *reterr) {
        cleanup_free char *outdated = pod_life_print_outdated(slot->life, plan);
        int r = outdated ? edit_keep_identity(pod_life_pod(slot->life), slot->next) : -ENOMEM;

        if (r >= 0)
                r = slot_store(s, slot, slot->next, slot->next_file, outdated, reterr);
        if (r < 0)
                return r;
        free(slot->file);
        slot->file = TAKE_PTR(slot->next_file);
        pod_life_edit_take(slot->life, TAKE_PTR(slot->next), plan);
        slot_forget_next(slot);
        s->qos_is_due = true;
        return 0;
}

static void apply_or_retry(Supervisor *s, Slot *slot, const EditPlan *plan) {
        cleanup_error Error error = ERROR_NULL;
        int r = apply(s, slot, plan, &error);

        if (r >= 0)
                return;
        pod_life_set_edit_trouble(slot->life, error_message(&error, r));
        slot_mark_later(slot, STORE_RETRY_USEC);
}

/* ---- in its place ---- */

static void on_staging_news(void *userdata) {
        slot_mark(userdata);
}

static void replace(Slot *slot, const char *why) {
        log_info("Pod '%s' is replaced, edited: %s", slot->description, why);
        pod_life_set_edit_trouble(slot->life, NULL);
        slot->retry_timer = sd_event_source_disable_unref(slot->retry_timer);
        /* On disk: the next agent, too, shall start nothing of it again. */
        pod_life_delete(slot->life, -1);
}

static char *print_reasons(const EditPlan *plan) {
        cleanup_free char *of_pod = edit_plan_print(plan, EDIT_REPLACE, NULL);
        char *text = NULL;

        if (of_pod && of_pod[0])
                return TAKE_PTR(of_pod);
        /* The ports of a container are all else that is of the pod. */
        for (size_t i = 0; i < plan->changes.n; i++)
                if (plan->changes.items[i].effect == EDIT_REPLACE &&
                    asprintf(&text, "%s of container %s", plan->changes.items[i].path,
                             strna(plan->changes.items[i].container)) >= 0)
                        return text;
        return NULL;
}

static void wait_for_successor(Supervisor *s, Slot *slot, const char *reasons,
                               const char *sentence) {
        cleanup_free char *trouble = NULL;

        if (asprintf(&trouble, "%s is another, and the pod with it cannot begin: %s", reasons,
                     sentence) < 0)
                trouble = NULL;
        pod_life_set_edit_trouble(slot->life, strna(trouble));
        if (slot->retry_timer)
                return; /* not the time yet: a pod is stepped for other reasons too */
        slot->retry_delay_usec = back_off_next(slot->retry_delay_usec, &s->context.back_off);
        slot_mark_later(slot, slot->retry_delay_usec);
}

static void stage(Supervisor *s, Slot *slot, const EditPlan *plan) {
        cleanup_free char *reasons = print_reasons(plan);
        cleanup_error Error error = ERROR_NULL;
        int r = 0;

        /* Nothing would be lost, and what the successor lacks is better seen in its own status. */
        if (pod_life_has_ended(slot->life) || !pod_life_has_begun(slot->life)) {
                replace(slot, strna(reasons));
                return;
        }
        if (!slot->staging)
                r = staging_new(&s->context, slot->next, on_staging_news, slot, &slot->staging);
        if (r >= 0)
                r = staging_step(slot->staging, &error);
        if (r > 0)
                replace(slot, strna(reasons));
        else if (r < 0)
                wait_for_successor(s, slot, strna(reasons), error_message(&error, r));
}

void slot_consider_edit(Supervisor *s, Slot *slot) {
        cleanup_with(edit_plan_done) EditPlan plan = { 0 };
        int r;

        if (!pod_life_is_editable(slot->life))
                return; /* it begins when the other has ended, or is looked at when that is known */
        r = edit_plan(pod_life_pod(slot->life), slot->next, &plan);
        if (r < 0) {
                slot_mark_later(slot, STORE_RETRY_USEC);
                return;
        }
        switch (plan.effect) {
        case EDIT_NONE:
                slot_forget_next(slot);
                break;
        case EDIT_RESTART:
                if (pod_life_has_ended(slot->life))
                        replace(slot, "it had ended");
                else
                        apply_or_retry(s, slot, &plan);
                break;
        case EDIT_LIVE:
                if (pod_life_has_failed(slot->life))
                        replace(slot, "it had failed");
                else
                        apply_or_retry(s, slot, &plan);
                break;
        case EDIT_REPLACE:
                stage(s, slot, &plan);
                break;
        case N_EDIT_EFFECTS:
                break;
        }
}
