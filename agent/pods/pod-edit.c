/* SPDX-License-Identifier: Apache-2.0 */
/* A pod whose manifest is another while it runs: what of the edit touches what runs. Which fields
 * do is model/edit's to say, and whether the pod is replaced the supervisor's. */

#include "agent/bundle/resize.h"
#include "agent/model/schema.h"
#include "agent/pods/event-recorder.h"
#include "agent/pods/pod-worker-private.h"
#include "agent/pods/slices.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/log.h"

/* Memory that is in use is seldom given back at once. */
static const BackOffLimits resize_back_off = { 1 * USEC_PER_SEC, 60 * USEC_PER_SEC };

bool pod_worker_is_editable(const PodWorker *worker) {
        return worker->is_desired && worker->state != WORKER_SYNCING && !worker->needs_cleanup;
}

bool pod_worker_has_terminated(PodWorker *worker) {
        /* One that has failed as a whole never begins again, and its successor may. */
        return !pod_worker_should_run(worker);
}

bool pod_worker_has_processes(const PodWorker *worker) {
        for (size_t i = 0; i < worker->n_containers; i++)
                if (container_machine_has_process(worker->containers[i].machine))
                        return true;
        return false;
}

bool pod_worker_has_started(const PodWorker *worker) {
        for (size_t i = 0; i < worker->n_containers; i++)
                if (container_machine_has_any_attempt(worker->containers[i].machine))
                        return true;
        return false;
}

void pod_worker_set_edit_error(PodWorker *worker, const char *message) {
        if (streq_ptr(worker->edit_error, message))
                return;
        free(worker->edit_error);
        worker->edit_error = message ? strdup(message) : NULL;
        if (message) {
                log_warning("Pod '%s' runs on as it was: %s", worker->description, message);
                record_pod_event(worker, NULL, POD_EVENT_WARNING, "EditPending", "%s", message);
        }
        pod_worker_mark_dirty(worker);
}

/* ---- attempts of an older spec ---- */

/* The present attempt began, by the spec of now. */
static bool has_current_attempt_begun(const PodContainer *c) {
        return container_machine_has_run(c->machine, container_machine_attempt(c->machine));
}

bool pod_container_is_outdated(const PodContainer *c) {
        return c->is_outdated && container_machine_has_run(c->machine, c->outdated_attempt);
}

char *pod_worker_print_outdated(const PodWorker *worker, const EditPlan *plan) {
        char *text = NULL;
        size_t length, n = 0;
        FILE *out = open_memstream(&text, &length);

        if (!out)
                return NULL;
        for (size_t i = 0; i < worker->n_containers; i++) {
                const PodContainer *c = &worker->containers[i];
                bool restarts =
                        plan && has_current_attempt_begun(c) &&
                        edit_plan_container_effect(plan, c->spec->name) == EDIT_RESTART_CONTAINER;

                if (restarts || pod_container_is_outdated(c))
                        (void) fprintf(out, "%s%s %u", n++ > 0 ? " " : "", c->spec->name,
                                       container_machine_attempt(c->machine));
        }
        return memstream_finish(out, &text);
}

void pod_worker_parse_outdated(PodWorker *worker, const char *text) {
        cleanup_free char *copy = strdup(strna(text));
        char *rest = copy, *name;

        while (rest && (name = strsep(&rest, " ")) && rest) {
                PodContainer *c = pod_worker_find_container(worker, name);
                unsigned long attempt = strtoul(rest, &rest, 10);

                if (c) {
                        c->is_outdated = true;
                        c->outdated_attempt = (unsigned) attempt;
                }
                rest += *rest == ' ';
        }
}

void pod_worker_restart_outdated(PodWorker *worker) {
        for (size_t i = 0; i < worker->n_containers; i++)
                if (pod_container_is_outdated(&worker->containers[i]))
                        container_machine_restart_edited(worker->containers[i].machine);
}

/* ---- resources ---- */

static int on_pod_resize_retry(sd_event_source *source, uint64_t usec, void *userdata) {
        pod_worker_resize_cgroups(userdata);
        return 0;
}

static void set_resize_error(PodWorker *worker, const char *message) {
        if (!streq_ptr(worker->resize_error, message)) {
                free(worker->resize_error);
                worker->resize_error = message ? strdup(message) : NULL;
                if (message) {
                        log_warning("Pod '%s': %s, trying again", worker->description, message);
                        record_pod_event(worker, NULL, POD_EVENT_WARNING, "ResizeError", "%s",
                                         message);
                }
                pod_worker_mark_dirty(worker);
        }
        worker->resize_timer = sd_event_source_disable_unref(worker->resize_timer);
        worker->resize_delay_usec =
                message ? back_off_next_delay(worker->resize_delay_usec, &resize_back_off) : 0;
        if (message)
                (void) sd_event_add_time_relative(worker->context->event, &worker->resize_timer,
                                                  CLOCK_BOOTTIME, worker->resize_delay_usec, 0,
                                                  on_pod_resize_retry, worker);
}

void pod_worker_resize_cgroups(PodWorker *worker) {
        cleanup_free RunningContainer *running = calloc(worker->n_containers + 1, sizeof(*running));
        cleanup_error Error error = ERROR_NULL;
        size_t n = 0;
        int r;

        if (!running || !pod_worker_should_run(worker) || !pod_worker_is_set_up(worker))
                return;
        for (size_t i = 0; i < worker->n_containers; i++) {
                const PodContainer *c = &worker->containers[i];

                /* Who is stopped for his new limits ends by those that he began with. */
                if (container_machine_is_running(c->machine) && !pod_container_is_outdated(c))
                        running[n++] = (RunningContainer){ c->spec,
                                                           container_machine_attempt(c->machine) };
        }
        r = bundle_resize_pod(worker->context->bundle, worker->pod, running, n, &error);
        slices_resize(worker->context, worker->pod, running, n);
        set_resize_error(worker, r < 0 ? error_message(&error, r) : NULL);
}

void pod_worker_restore_slices(PodWorker *worker) {
        if (slices_restore_pod(worker->context, worker->pod))
                pod_worker_resize_cgroups(worker);
}

static bool is_resource_field(const char *path) {
        return strncmp(path, "resources.", 10) == 0 || strncmp(path, "spec.resources.", 15) == 0 ||
               streq(path, "spec.overhead");
}

static bool edit_changes_resources(const EditPlan *plan, const char *container) {
        for (size_t i = 0; i < plan->changes.n; i++)
                if (is_resource_field(plan->changes.items[i].path) &&
                    (!container || streq_ptr(plan->changes.items[i].container, container)))
                        return true;
        return false;
}

/* ---- the edit ---- */

static void report_edit(const PodWorker *worker, const EditPlan *plan, EditEffect effect,
                        const char *container) {
        cleanup_free char *text = edit_plan_format(plan, effect, container);

        if (!text || !text[0])
                return;
        if (effect == EDIT_RESTART_CONTAINER) {
                log_info("Container '%s/%s' restarts, edited: %s", worker->description, container,
                         text);
                record_pod_event(worker, container, POD_EVENT_NORMAL, "Killing",
                                 "Container %s definition changed, will be restarted", container);
        } else
                log_info("Pod '%s'%s%s: edited while it runs: %s", worker->description,
                         container ? ", container " : "", strna(container), text);
}

static void apply_container_edit(PodContainer *c, const EditPlan *plan) {
        report_edit(c->pod, plan, EDIT_IN_PLACE, c->spec->name);
        report_edit(c->pod, plan, EDIT_RESTART_CONTAINER, c->spec->name);
        if (edit_plan_container_effect(plan, c->spec->name) == EDIT_RESTART_CONTAINER) {
                c->is_outdated = c->is_outdated || has_current_attempt_begun(c);
                if (has_current_attempt_begun(c))
                        c->outdated_attempt = container_machine_attempt(c->machine);
                container_machine_restart_edited(c->machine);
        } else if (edit_changes_resources(plan, c->spec->name))
                container_machine_reset_back_off(c->machine);
}

void pod_worker_apply_edit_take(PodWorker *worker, Pod *pod, const EditPlan *plan) {
        Pod old = *worker->pod;

        /* The place of the pod stays, and so does its UID: both are looked at through pointers. */
        *worker->pod = *pod;
        worker->pod->metadata.uid = old.metadata.uid;
        old.metadata.uid = pod->metadata.uid;
        *pod = old;
        for (size_t i = 0; i < worker->n_containers; i++) {
                PodContainer *c = &worker->containers[i];
                const Container *former = c->spec;
                ContainerRestartPolicy terms;

                c->spec = pod_nth_container(&worker->pod->spec, i);
                terms = container_restart_policy(&worker->pod->spec, c->spec);
                container_machine_set_spec(c->machine, c->spec, &terms);
                container_probes_on_spec_changed(c, former);
        }
        /* By another time, if it has one; the next step looks. */
        worker->deadline_timer = sd_event_source_disable_unref(worker->deadline_timer);
        pod_free(pod); /* what is under way has copied what it needs */
        report_edit(worker, plan, EDIT_IN_PLACE, NULL);
        for (size_t i = 0; i < worker->n_containers; i++)
                apply_container_edit(&worker->containers[i], plan);
        if (edit_changes_resources(plan, NULL)) {
                worker->resize_delay_usec = 0;
                pod_worker_resize_cgroups(worker);
        }
        pod_worker_update_volumes(worker);
        pod_worker_set_edit_error(worker, NULL);
        pod_worker_mark_dirty(worker);
}
