/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/pods/container/pod-containers.h"

#include "common/array.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/file.h"

int pod_containers_add_new(PodContainers *containers) {
        const PodInstance *pod = containers->pod;
        size_t n = pod_count_containers(&pod->pod->spec);
        int r = 0;

        if (!ARRAY_RESERVE(containers->order, containers->n, n - containers->n) ||
            !ARRAY_RESERVE(containers->items, containers->n, n - containers->n))
                return -ENOMEM;
        for (; r >= 0 && containers->n < n; containers->n += r >= 0)
                r = pod_container_new(pod, pod_nth_container(&pod->pod->spec, containers->n),
                                      containers->callbacks, containers->userdata,
                                      &containers->items[containers->n]);
        return r;
}

int pod_containers_init(PodContainers *containers, const PodInstance *pod,
                        const PodContainerCallbacks *callbacks, void *userdata) {
        *containers = (PodContainers){ .pod = pod, .callbacks = callbacks, .userdata = userdata };
        return pod_containers_add_new(containers);
}

void pod_containers_done(PodContainers *containers) {
        for (size_t i = 0; i < containers->n; i++)
                pod_container_free(containers->items[i]);
        free(containers->items);
        free(containers->order);
        sd_event_source_disable_unref(containers->restart_all_timer);
        *containers = (PodContainers){ 0 };
}

PodContainer *pod_containers_find(const PodContainers *containers, const char *name) {
        for (size_t i = 0; name && i < containers->n; i++)
                if (streq(pod_container_instance(containers->items[i])->spec->name, name))
                        return containers->items[i];
        return NULL;
}

/* ---- order ---- */

static void observe_containers(PodContainers *containers) {
        for (size_t i = 0; i < containers->n; i++)
                containers->order[i] = pod_container_order_entry(containers->items[i]);
}

static PodProgress pod_containers_progress(PodContainers *containers) {
        observe_containers(containers);
        return pod_progress_of(containers->order, containers->n);
}

/* The longest delay of the containers that request a restart of all containers; false if none does.
 */
static bool find_restart_all_delay(const PodContainers *containers, uint64_t *ret_delay_usec) {
        uint64_t delay, longest = 0;
        bool found = false;

        for (size_t i = 0; i < containers->n; i++)
                if (container_machine_wants_restart_all(pod_container_machine(containers->items[i]),
                                                        &delay)) {
                        longest = MAX(longest, delay);
                        found = true;
                }
        *ret_delay_usec = longest;
        return found;
}

bool pod_containers_should_run(PodContainers *containers) {
        PodProgress progress = pod_containers_progress(containers);
        uint64_t delay;

        return containers->restart_all != RESTART_ALL_NONE || progress == PROGRESS_INITIALIZING ||
               progress == PROGRESS_RUNNING || find_restart_all_delay(containers, &delay);
}

bool pod_containers_allow_start(PodContainers *containers, const PodContainer *container) {
        size_t i = 0;

        if (containers->restart_all != RESTART_ALL_NONE)
                return false;
        while (i < containers->n && containers->items[i] != container)
                i++;
        observe_containers(containers);
        return container_order_allows_start(containers->order, containers->n, i);
}

static void apply_order_action(ContainerMachine *machine, ContainerOrderAction action) {
        switch (action) {
        case ORDER_START:
                container_machine_start(machine);
                break;
        case ORDER_STOP_IN_TURN:
                container_machine_stop_in_turn(machine);
                break;
        case ORDER_STOP:
                container_machine_stop(machine);
                break;
        case ORDER_NOTHING:
                break;
        }
}

void pod_containers_sync(PodContainers *containers, const ContainerOrderInput *input) {
        observe_containers(containers);
        plan_container_order(containers->order, containers->n, input);
        for (size_t i = 0; i < containers->n; i++)
                apply_order_action(pod_container_machine(containers->items[i]),
                                   containers->order[i].action);
}

void pod_containers_on_new_sandbox(PodContainers *containers) {
        for (size_t i = 0; i < containers->n; i++)
                pod_container_on_new_sandbox(containers->items[i]);
}

/* ---- restart of all containers ---- */

/* The timer of an earlier back-off that a shutdown interrupted may still be armed, and must not
 * affect this one. */
static void end_restart_all(PodContainers *containers) {
        containers->restart_all_timer =
                sd_event_source_disable_unref(containers->restart_all_timer);
        containers->restart_all = RESTART_ALL_NONE;
        containers->restarts_stopped_only = false;
}

static int on_restart_all_timer(sd_event_source *source, uint64_t usec, void *userdata) {
        PodContainers *containers = userdata;

        end_restart_all(containers);
        pod_instance_mark_dirty(containers->pod);
        return 0;
}

static void wait_restart_all_back_off(PodContainers *containers, uint64_t delay_usec) {
        int r;

        end_restart_all(containers);
        if (delay_usec == 0)
                return;
        r = sd_event_add_time_relative(containers->pod->context->event,
                                       &containers->restart_all_timer, CLOCK_BOOTTIME, delay_usec,
                                       0, on_restart_all_timer, containers);
        if (r < 0)
                log_error("Cannot arm the back-off timer of the restart of all containers of pod "
                          "'%s': %s; restarting them now",
                          containers->pod->description, strerror(-r));
        else
                containers->restart_all = RESTART_ALL_BACK_OFF;
}

/* A restarted agent resets containers whose attempt is of an older generation, so the generation
 * does not change if completed containers must not run again. */
static void reset_for_restart_all(PodContainers *containers, bool wants_restart_all) {
        bool resets_all = wants_restart_all || !containers->restarts_stopped_only;

        for (size_t i = 0; i < containers->n; i++)
                if (resets_all ||
                    container_machine_was_interrupted(pod_container_machine(containers->items[i])))
                        pod_container_reset(containers->items[i]);
        if (resets_all)
                containers->generation++;
}

void pod_containers_step_restart_all(PodContainers *containers, bool is_terminating) {
        uint64_t delay = 0;

        if (is_terminating)
                end_restart_all(containers);
        else if (containers->restart_all == RESTART_ALL_NONE &&
                 find_restart_all_delay(containers, &delay)) {
                containers->restart_all = RESTART_ALL_STOPPING;
                log_info("All containers of pod '%s' are restarted", containers->pod->description);
        }
        if (containers->restart_all != RESTART_ALL_STOPPING ||
            !pod_containers_are_finished(containers))
                return;
        reset_for_restart_all(containers, find_restart_all_delay(containers, &delay));
        wait_restart_all_back_off(containers, delay);
}

void pod_containers_restart_stopped(PodContainers *containers) {
        containers->restart_all = RESTART_ALL_STOPPING;
        containers->restarts_stopped_only = true;
}

void pod_containers_adopt_generation(PodContainers *containers) {
        for (size_t i = 0; i < containers->n; i++)
                containers->generation =
                        MAX(containers->generation, pod_container_generation(containers->items[i]));
        for (size_t i = 0; i < containers->n; i++)
                pod_container_reset_old_generation(containers->items[i], containers->generation);
}

/* ---- queries ---- */

bool pod_containers_have_processes(const PodContainers *containers) {
        for (size_t i = 0; i < containers->n; i++)
                if (container_machine_has_process(pod_container_machine(containers->items[i])))
                        return true;
        return false;
}

bool pod_containers_have_started(const PodContainers *containers) {
        for (size_t i = 0; i < containers->n; i++)
                if (container_machine_has_any_attempt(pod_container_machine(containers->items[i])))
                        return true;
        return false;
}

bool pod_containers_are_finished(const PodContainers *containers) {
        for (size_t i = 0; i < containers->n; i++)
                if (!container_machine_is_finished(pod_container_machine(containers->items[i])))
                        return false;
        return true;
}

bool pod_containers_have_completed(PodContainers *containers, uint64_t *ret_finished_at) {
        PodProgress progress = pod_containers_progress(containers);

        *ret_finished_at = 0;
        if (progress != PROGRESS_FAILED && progress != PROGRESS_DONE)
                return false;
        for (size_t i = 0; i < containers->n; i++)
                if (containers->order[i].role == ROLE_MAIN ||
                    containers->order[i].role == ROLE_INIT)
                        *ret_finished_at = MAX(*ret_finished_at,
                                               container_machine_finished_at(pod_container_machine(
                                                       containers->items[i])));
        return true;
}

RunningContainer *pod_containers_list_running(const PodContainers *containers, size_t *ret_n) {
        RunningContainer *running = calloc(containers->n + 1, sizeof(*running));

        *ret_n = 0;
        for (size_t i = 0; running && i < containers->n; i++) {
                const ContainerInstance *c = pod_container_instance(containers->items[i]);

                /* A container that is stopped for new limits keeps the old ones until then. */
                if (container_machine_is_running(c->machine) &&
                    !pod_container_is_outdated(containers->items[i]))
                        running[(*ret_n)++] =
                                (RunningContainer){ c->spec,
                                                    container_machine_attempt(c->machine) };
        }
        return running;
}

bool pod_containers_has_creating(const PodContainers *containers) {
        for (size_t i = 0; i < containers->n; i++)
                if (container_machine_is_creating(pod_container_machine(containers->items[i])))
                        return true;
        return false;
}

/* ---- edits ---- */

char *pod_containers_print_outdated(const PodContainers *containers, const EditPlan *plan) {
        char *text = NULL;
        size_t length, n = 0;
        FILE *out = open_memstream(&text, &length);

        if (!out)
                return NULL;
        for (size_t i = 0; i < containers->n; i++) {
                const PodContainer *container = containers->items[i];
                const ContainerInstance *c = pod_container_instance(container);
                bool restarts =
                        plan && pod_container_has_current_attempt(container) &&
                        edit_plan_container_effect(plan, c->spec->name) == EDIT_RESTART_CONTAINER;

                if (restarts || pod_container_is_outdated(container))
                        (void) fprintf(out, "%s%s %u", n++ > 0 ? " " : "", c->spec->name,
                                       container_machine_attempt(c->machine));
        }
        return memstream_finish(out, &text);
}

void pod_containers_parse_outdated(PodContainers *containers, const char *text) {
        cleanup_free char *copy = strdup(strna(text));
        char *rest = copy, *name;

        while (rest && (name = strsep(&rest, " ")) && rest) {
                PodContainer *container = pod_containers_find(containers, name);
                unsigned long attempt = strtoul(rest, &rest, 10);

                if (container)
                        pod_container_set_outdated(container, (unsigned) attempt);
                rest += *rest == ' ';
        }
}

bool pod_containers_are_outdated(const PodContainers *containers) {
        for (size_t i = 0; i < containers->n; i++)
                if (pod_container_is_outdated(containers->items[i]))
                        return true;
        return false;
}

bool pod_containers_await_edit(const PodContainers *containers) {
        for (size_t i = 0; i < containers->n; i++)
                if (pod_container_awaits_edit(containers->items[i]))
                        return true;
        return false;
}

void pod_containers_restart_outdated(PodContainers *containers) {
        for (size_t i = 0; i < containers->n; i++)
                if (pod_container_is_outdated(containers->items[i]))
                        container_machine_restart_edited(
                                pod_container_machine(containers->items[i]));
}
