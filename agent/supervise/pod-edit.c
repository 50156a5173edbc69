/* SPDX-License-Identifier: Apache-2.0 */
/* A pod whose manifest is another while it runs: what of the edit touches what runs. Which fields
 * do is model/edit's to say, and whether the pod is replaced the supervisor's. */

#include "agent/bundle/resize.h"
#include "agent/model/schema.h"
#include "agent/supervise/pod-internal.h"
#include "agent/supervise/slices.h"
#include "agent/supervise/tell.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/file.h"
#include "common/log.h"

/* Memory that is in use is seldom given back at once. */
static const BackOff resize_back_off = { 1 * USEC_PER_SEC, 60 * USEC_PER_SEC };

bool pod_life_is_editable(const PodLife *life) {
        return life->is_wanted && life->phase != PHASE_SYNCING && !life->must_clean;
}

bool pod_life_has_ended(PodLife *life) {
        /* One that has failed as a whole never begins again, and its successor may. */
        return !pod_life_goes_on(life);
}

bool pod_life_has_processes(const PodLife *life) {
        for (size_t i = 0; i < life->n_containers; i++)
                if (container_has_process(life->containers[i].life))
                        return true;
        return false;
}

bool pod_life_has_begun(const PodLife *life) {
        for (size_t i = 0; i < life->n_containers; i++)
                if (container_has_begun(life->containers[i].life))
                        return true;
        return false;
}

void pod_life_set_edit_trouble(PodLife *life, const char *message) {
        if (streq_ptr(life->edit_trouble, message))
                return;
        free(life->edit_trouble);
        life->edit_trouble = message ? strdup(message) : NULL;
        if (message) {
                log_warning("Pod '%s' runs on as it was: %s", life->description, message);
                event_tell(life, NULL, POD_EVENT_WARNING, "EditPending", "%s", message);
        }
        pod_life_mark(life);
}

/* ---- attempts of an older spec ---- */

/* The present attempt began, by the spec of now. */
static bool has_begun(const PodContainer *c) {
        return container_has_run(c->life, container_attempt(c->life));
}

bool pod_container_is_outdated(const PodContainer *c) {
        return c->is_outdated && container_has_run(c->life, c->outdated_attempt);
}

char *pod_life_print_outdated(const PodLife *life, const EditPlan *plan) {
        char *text = NULL;
        size_t length, n = 0;
        FILE *out = open_memstream(&text, &length);

        if (!out)
                return NULL;
        for (size_t i = 0; i < life->n_containers; i++) {
                const PodContainer *c = &life->containers[i];
                bool restarts = plan && has_begun(c) &&
                                edit_plan_of_container(plan, c->spec->name) == EDIT_RESTART;

                if (restarts || pod_container_is_outdated(c))
                        (void) fprintf(out, "%s%s %u", n++ > 0 ? " " : "", c->spec->name,
                                       container_attempt(c->life));
        }
        return memstream_finish(out, &text);
}

void pod_life_read_outdated(PodLife *life, const char *text) {
        cleanup_free char *copy = strdup(strna(text));
        char *rest = copy, *name;

        while (rest && (name = strsep(&rest, " ")) && rest) {
                PodContainer *c = pod_life_find_container(life, name);
                unsigned long attempt = strtoul(rest, &rest, 10);

                if (c) {
                        c->is_outdated = true;
                        c->outdated_attempt = (unsigned) attempt;
                }
                rest += *rest == ' ';
        }
}

void pod_life_restart_outdated(PodLife *life) {
        for (size_t i = 0; i < life->n_containers; i++)
                if (pod_container_is_outdated(&life->containers[i]))
                        container_edit(life->containers[i].life);
}

/* ---- resources ---- */

static int on_resize_timer(sd_event_source *source, uint64_t usec, void *userdata) {
        pod_life_resize(userdata);
        return 0;
}

static void set_resize_trouble(PodLife *life, const char *message) {
        if (!streq_ptr(life->resize_trouble, message)) {
                free(life->resize_trouble);
                life->resize_trouble = message ? strdup(message) : NULL;
                if (message) {
                        log_warning("Pod '%s': %s, trying again", life->description, message);
                        event_tell(life, NULL, POD_EVENT_WARNING, "ResizeError", "%s", message);
                }
                pod_life_mark(life);
        }
        life->resize_timer = sd_event_source_disable_unref(life->resize_timer);
        life->resize_delay_usec =
                message ? back_off_next(life->resize_delay_usec, &resize_back_off) : 0;
        if (message)
                (void) sd_event_add_time_relative(life->context->event, &life->resize_timer,
                                                  CLOCK_BOOTTIME, life->resize_delay_usec, 0,
                                                  on_resize_timer, life);
}

void pod_life_resize(PodLife *life) {
        cleanup_free RunningContainer *running = calloc(life->n_containers + 1, sizeof(*running));
        cleanup_error Error error = ERROR_NULL;
        size_t n = 0;
        int r;

        if (!running || !pod_life_goes_on(life) || !pod_life_is_prepared(life))
                return;
        for (size_t i = 0; i < life->n_containers; i++) {
                const PodContainer *c = &life->containers[i];

                /* Who is stopped for his new limits ends by those that he began with. */
                if (container_is_running(c->life) && !pod_container_is_outdated(c))
                        running[n++] = (RunningContainer){ c->spec, container_attempt(c->life) };
        }
        r = bundle_resize(life->context->bundle, life->pod, running, n, &error);
        slices_resize(life->context, life->pod, running, n);
        set_resize_trouble(life, r < 0 ? error_message(&error, r) : NULL);
}

void pod_life_restore_slices(PodLife *life) {
        if (slices_restore_pod(life->context, life->pod))
                pod_life_resize(life);
}

static bool is_resource(const char *path) {
        return strncmp(path, "resources.", 10) == 0 || strncmp(path, "spec.resources.", 15) == 0 ||
               streq(path, "spec.overhead");
}

static bool changes_resources(const EditPlan *plan, const char *container) {
        for (size_t i = 0; i < plan->changes.n; i++)
                if (is_resource(plan->changes.items[i].path) &&
                    (!container || streq_ptr(plan->changes.items[i].container, container)))
                        return true;
        return false;
}

/* ---- the edit ---- */

static void tell(const PodLife *life, const EditPlan *plan, EditEffect effect,
                 const char *container) {
        cleanup_free char *text = edit_plan_print(plan, effect, container);

        if (!text || !text[0])
                return;
        if (effect == EDIT_RESTART) {
                log_info("Container '%s/%s' restarts, edited: %s", life->description, container,
                         text);
                event_tell(life, container, POD_EVENT_NORMAL, "Killing",
                           "Container %s definition changed, will be restarted", container);
        } else
                log_info("Pod '%s'%s%s: edited while it runs: %s", life->description,
                         container ? ", container " : "", strna(container), text);
}

static void edit_container(PodContainer *c, const EditPlan *plan) {
        tell(c->pod, plan, EDIT_LIVE, c->spec->name);
        tell(c->pod, plan, EDIT_RESTART, c->spec->name);
        if (edit_plan_of_container(plan, c->spec->name) == EDIT_RESTART) {
                c->is_outdated = c->is_outdated || has_begun(c);
                if (has_begun(c))
                        c->outdated_attempt = container_attempt(c->life);
                container_edit(c->life);
        } else if (changes_resources(plan, c->spec->name))
                container_forgive(c->life);
}

void pod_life_edit_take(PodLife *life, Pod *pod, const EditPlan *plan) {
        Pod old = *life->pod;

        /* The place of the pod stays, and so does its UID: both are looked at through pointers. */
        *life->pod = *pod;
        life->pod->metadata.uid = old.metadata.uid;
        old.metadata.uid = pod->metadata.uid;
        *pod = old;
        for (size_t i = 0; i < life->n_containers; i++) {
                PodContainer *c = &life->containers[i];
                const Container *former = c->spec;
                RestartTerms terms;

                c->spec = pod_nth_container(&life->pod->spec, i);
                terms = restart_terms(&life->pod->spec, c->spec);
                container_set_spec(c->life, c->spec, &terms);
                probers_follow(c, former);
        }
        /* By another time, if it has one; the next step looks. */
        life->deadline_timer = sd_event_source_disable_unref(life->deadline_timer);
        pod_free(pod); /* what is under way has copied what it needs */
        tell(life, plan, EDIT_LIVE, NULL);
        for (size_t i = 0; i < life->n_containers; i++)
                edit_container(&life->containers[i], plan);
        if (changes_resources(plan, NULL)) {
                life->resize_delay_usec = 0;
                pod_life_resize(life);
        }
        pod_life_update_volumes(life);
        pod_life_set_edit_trouble(life, NULL);
        pod_life_mark(life);
}
