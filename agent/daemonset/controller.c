/* SPDX-License-Identifier: Apache-2.0 */

/* The list of DaemonSets and its passes: determines which sets are desired and which are forgotten,
 * and when the next pass is due. The work of a pass on one set is in daemonset-sync.c; requests of
 * users are in requests.c. */

#include "agent/daemonset/controller.h"

#include "agent/daemonset/checkpoint.h"
#include "agent/daemonset/controller-private.h"
#include "agent/daemonset/rules/overlap.h"
#include "agent/model/object-identity.h"
#include "common/array.h"
#include "common/cleanup.h"
#include "common/dump.h"
#include "common/event-source.h"
#include "common/log.h"
#include "common/strv.h"

#include <errno.h>
#include <stdlib.h>

static DaemonSetState *find_daemonset_by_uid(const DaemonSetController *controller,
                                             const char *uid) {
        for (size_t i = 0; i < controller->n_sets; i++)
                if (streq(daemonset_state_uid(controller->sets[i]), uid))
                        return controller->sets[i];
        return NULL;
}

/* If several sources have the set, the first one is used: a file has precedence over objects with
 * the same name from users of the cluster. */
DaemonSetState *find_desired_daemonset(const DaemonSetController *controller, const char *namespace,
                                       const char *name) {
        DaemonSetState *found = NULL;

        for (size_t i = 0; i < controller->n_sets; i++) {
                DaemonSetState *state = controller->sets[i];
                const DaemonSet *set = daemonset_state_set(state);

                if (daemonset_state_is_desired(state, controller->pass.generation) &&
                    object_has_name(&set->metadata, namespace, name) &&
                    (!found || set->metadata.source < daemonset_state_set(found)->metadata.source))
                        found = state;
        }
        return found;
}

static DaemonSetState *add_daemonset(DaemonSetController *controller, const char *uid) {
        if (!ARRAY_RESERVE(controller->sets, controller->n_sets, 1) ||
            daemonset_state_new(uid, &controller->sets[controller->n_sets]) < 0)
                return NULL;
        return controller->sets[controller->n_sets++];
}

void daemonset_controller_schedule_sync(DaemonSetController *controller) {
        controller->config.on_recompute_due(controller->config.userdata);
}

static void on_pass_requested(void *userdata) {
        daemonset_controller_schedule_sync(userdata);
}

static int on_daemonset_timer(sd_event_source *source, uint64_t usec, void *userdata) {
        daemonset_controller_schedule_sync(userdata);
        return 0;
}

int daemonset_controller_new(const DaemonSetControllerConfig *config, DaemonSetController **ret) {
        cleanup_with(daemonset_controller_freep) DaemonSetController *controller =
                calloc(1, sizeof(*controller));
        int r;

        if (!controller)
                return -ENOMEM;
        controller->config = *config;
        controller->pass = (DaemonSetSyncPass){
                .state_dir = config->state_dir,
                .node = config->node_labels,
                .clock = config->clock,
                .pod_access = config->pod_access,
                .pods = config->pods,
                .on_event = config->on_event,
                .admit = config->admit,
                .event_userdata = config->userdata,
                .schedule_sync = on_pass_requested,
                .sync_userdata = controller,
                .orphans = orphan_pods_new(),
                .awake = awake_since_start(config->clock),
        };
        if (!controller->pass.orphans)
                return -ENOMEM;
        r = event_add_disabled_timer(config->event, &controller->timer, CLOCK_BOOTTIME, 1,
                                     on_daemonset_timer, controller);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(controller);
        return 0;
}

DaemonSetController *daemonset_controller_free(DaemonSetController *controller) {
        if (!controller)
                return NULL;
        for (size_t i = 0; i < controller->n_sets; i++)
                daemonset_state_free(controller->sets[i]);
        free(controller->sets);
        orphan_pods_free(controller->pass.orphans);
        observed_pods_done(&controller->pass.observed);
        strv_free(controller->warnings);
        sd_event_source_disable_unref(controller->timer);
        free(controller);
        return NULL;
}

/* ---- restart of the agent ---- */

static int restore_daemonset(const char *uid, DaemonSetHistory *history, DaemonSet *set,
                             void *userdata) {
        DaemonSetController *controller = userdata;
        DaemonSetState *state = add_daemonset(controller, uid);

        if (!state) {
                daemonset_history_done(history);
                daemonset_free(set);
                return -ENOMEM;
        }
        daemonset_state_restore_take(state, history, set, controller->pass.awake.usec);
        return 0;
}

/* The source of a set may be unreadable now. */
static int report_restored_daemonset(const DaemonSetState *state, restored_daemonset_t each,
                                     void *userdata) {
        cleanup_with(pod_source_done) PodSource source = { 0 };
        int r;

        r = pod_source_parse(daemonset_state_history(state)->source, &source);
        if (r < 0)
                return r;
        return each(&source, daemonset_state_set(state), userdata);
}

int daemonset_controller_load(DaemonSetController *controller, restored_daemonset_t each,
                              void *userdata, Error *reterr) {
        int r = daemonset_checkpoint_load(controller->config.state_dir, restore_daemonset,
                                          controller, reterr);

        if (r < 0)
                return r;
        for (size_t i = 0; i < controller->n_sets; i++) {
                if (daemonset_state_set(controller->sets[i]))
                        r = report_restored_daemonset(controller->sets[i], each, userdata);
                if (r < 0)
                        return r;
        }
        return 0;
}

int daemonset_controller_add_orphan(DaemonSetController *controller, const Pod *pod) {
        return orphan_pods_add(controller->pass.orphans, pod);
}

static DaemonSetState *find_owner_daemonset(const DaemonSetController *controller, const Pod *pod) {
        const OwnerReference *owner = object_controlling_daemonset(&pod->metadata);
        DaemonSetState *state = owner ? find_daemonset_by_uid(controller, strna(owner->uid)) : NULL;
        const DaemonSet *set = state ? daemonset_state_set(state) : NULL;
        ObjectIdentity identity;

        if (!set) /* the set was removed, or could not be read; its pods belong to this node */
                return pod_is_of_api(pod) ? NULL : state;
        identity = object_identity(&set->metadata);
        return object_is_controlled_by_daemonset(&pod->metadata, &identity) ? state : NULL;
}

int daemonset_controller_claim_record(const PodSource *source, const Pod *pod, void *userdata) {
        DaemonSetController *controller = userdata;
        const DaemonSetState *state = find_owner_daemonset(controller, pod);
        int r;

        if (source->kind != POD_SOURCE_ORPHAN && !(state && daemonset_state_is_orphaning(state)))
                return state && daemonset_state_set(state);
        r = daemonset_controller_add_orphan(controller, pod);
        return r < 0 ? r : 1;
}

/* ---- a pass ---- */

static void begin_daemonset_pass(DaemonSetController *controller, DesiredPods *desired) {
        DaemonSetSyncPass *pass = &controller->pass;

        pass->desired = desired;
        pass->generation++;
        pass->now = steady_now_usec(pass->clock);
        pass->requeue_at = 0;
        pass->has_peer_affinity = false;
        pass->has_failed = sync_pass_observe_pods(pass) < 0;
}

static int sync_daemonset(DaemonSetController *controller, const PodSource *source,
                          const DaemonSet *set) {
        DaemonSetState *state = find_daemonset_by_uid(controller, set->metadata.uid);
        int r;

        if (!state)
                state = add_daemonset(controller, set->metadata.uid);
        if (!state)
                return -ENOMEM;
        if (daemonset_state_is_desired(state, controller->pass.generation)) {
                log_warning("Ignoring DaemonSet '%s/%s' of %s: its UID is that of a DaemonSet of "
                            "%s",
                            set->metadata.namespace, set->metadata.name,
                            pod_source_describe(source),
                            pod_source_describe(daemonset_state_source(state)));
                return 0;
        }
        r = daemonset_state_set_desired(state, source, set, controller->pass.generation);
        if (r < 0)
                return r;
        r = daemonset_state_sync(&controller->pass, state);
        if (r >= 0 || r == -ENOMEM)
                return r;
        log_error("Cannot sync DaemonSet '%s/%s': %s; its pods continue to run",
                  set->metadata.namespace, set->metadata.name, strerror(-r));
        return daemonset_state_keep_pods(&controller->pass, state);
}

static void add_desired_orphans(DaemonSetSyncPass *pass) {
        static const PodSource source = { .kind = POD_SOURCE_ORPHAN };
        const Pod *orphan;

        for (size_t i = 0; (orphan = orphan_pods_get(pass->orphans, i)); i++)
                if (desired_pods_add(pass->desired, &source, orphan) < 0)
                        pass->has_failed = true;
}

static void forget_daemonset_at(DaemonSetController *controller, size_t i) {
        DaemonSetState *state = controller->sets[i];

        memmove(&controller->sets[i], &controller->sets[i + 1],
                (--controller->n_sets - i) * sizeof(DaemonSetState *));
        controller->pass.has_changed_sets = true;
        daemonset_checkpoint_remove(controller->config.state_dir, daemonset_state_uid(state),
                                    daemonset_state_history(state));
        daemonset_state_free(state);
}

/* A set that is not desired is kept only as the owner of pods that are terminating, or that an API
 * server has not taken over yet. */
static void forget_undesired_daemonsets(DaemonSetController *controller) {
        controller->has_undesired = false;
        for (size_t i = controller->n_sets; i-- > 0;) {
                DaemonSetState *state = controller->sets[i];

                if (daemonset_state_is_desired(state, controller->pass.generation))
                        continue;
                if (!observed_pods_have_owner(&controller->pass.observed,
                                              daemonset_state_uid(state))) {
                        forget_daemonset_at(controller, i);
                        continue;
                }
                controller->has_undesired = true;
                daemonset_state_drop_set(state);
        }
}

static DaemonSetWithOrigin describe_origin(const DaemonSetState *state) {
        return (DaemonSetWithOrigin){ daemonset_state_set(state),
                                      pod_source_describe(daemonset_state_source(state)) };
}

static void warn_daemonset_overlaps(DaemonSetController *controller) {
        unsigned generation = controller->pass.generation;

        if (!controller->pass.has_changed_sets)
                return;
        controller->pass.has_changed_sets = false;
        controller->warnings = strv_free(controller->warnings);
        for (size_t i = controller->n_sets; i-- > 0;)
                for (size_t j = i; j-- > 0;) {
                        const DaemonSetState *a = controller->sets[i], *b = controller->sets[j];
                        DaemonSetWithOrigin left = describe_origin(a), right = describe_origin(b);

                        if (daemonset_state_is_desired(a, generation) &&
                            daemonset_state_is_desired(b, generation))
                                (void) daemonset_warn_overlap(&left, &right, &controller->warnings);
                }
}

static int set_daemonset_timer(DaemonSetController *controller, uint64_t when) {
        return when == 0 ? sd_event_source_set_enabled(controller->timer, SD_EVENT_OFF)
                         : event_timer_arm_at(controller->timer,
                                              when - controller->config.clock->offset);
}

static void end_daemonset_pass(DaemonSetController *controller) {
        DaemonSetSyncPass *pass = &controller->pass;
        int r;

        add_desired_orphans(pass);
        if (!pass->has_failed)
                forget_undesired_daemonsets(controller);
        warn_daemonset_overlaps(controller);
        r = set_daemonset_timer(controller, pass->requeue_at);
        if (r < 0)
                (void) log_error_errno(r, "Cannot set the timer of the DaemonSet controller");
        observed_pods_done(&pass->observed);
        pass->desired = NULL;
        controller->config.on_changed(controller->config.userdata);
}

int daemonset_controller_add_pods(const DesiredDaemonSets *sets, DesiredPods *desired,
                                  void *userdata) {
        DaemonSetController *controller = userdata;
        DaemonSetSyncPass *pass = &controller->pass;

        begin_daemonset_pass(controller, desired);
        /* A set that could not be synced must not look like a set that is not desired. */
        for (size_t i = 0; i < sets->n && !pass->has_failed; i++)
                if (sync_daemonset(controller, &sets->items[i].source, sets->items[i].set) < 0)
                        pass->has_failed = true;
        end_daemonset_pass(controller);
        return pass->has_failed ? -ENOMEM : 0;
}

char *const *daemonset_controller_warnings(void *userdata) {
        return ((DaemonSetController *) userdata)->warnings;
}

char *daemonset_controller_explain_stop(const PodSource *source, const Pod *pod, void *userdata) {
        DaemonSetController *controller = userdata;
        const DaemonSetState *state = find_owner_daemonset(controller, pod);

        return state ? daemonset_state_explain_stop(&controller->pass, state, pod) : NULL;
}

const DaemonSet *daemonset_controller_find_unready(PodSourceKind kind, void *userdata) {
        const DaemonSetController *controller = userdata;

        for (size_t i = 0; i < controller->n_sets; i++) {
                const DaemonSetState *state = controller->sets[i];

                if (daemonset_state_is_desired(state, controller->pass.generation) &&
                    daemonset_state_source(state)->kind == kind &&
                    !daemonset_state_is_rolled_out(state))
                        return daemonset_state_set(state);
        }
        return NULL;
}

/* ---- between passes ---- */

/* Whether pod affinity may permit something else now. */
static bool may_change_affinity(const DaemonSetSyncPass *pass, const Pod *pod, bool is_new,
                                bool is_gone) {
        const PodStatus *status;

        if (!pass->has_peer_affinity)
                return false;
        if (is_new || is_gone)
                return true;
        status = pass->pod_access->get_status(pass->pods, pod->metadata.uid);
        return status && (status->phase == POD_FAILED || status->phase == POD_SUCCEEDED);
}

void daemonset_controller_on_pod(DaemonSetController *controller, const Pod *pod, bool is_new,
                                 bool is_gone) {
        DaemonSetState *state = find_owner_daemonset(controller, pod);
        bool is_due = controller->has_undesired ||
                      may_change_affinity(&controller->pass, pod, is_new, is_gone);

        if (state && daemonset_state_on_pod(&controller->pass, state, pod, is_new, is_gone))
                is_due = true;
        if (is_due)
                daemonset_controller_schedule_sync(controller);
        if (state)
                controller->config.on_changed(controller->config.userdata);
}

void daemonset_controller_images_changed(DaemonSetController *controller) {
        for (size_t i = 0; i < controller->n_sets; i++)
                if (daemonset_state_retry_preflight(controller->sets[i]))
                        daemonset_controller_schedule_sync(controller);
}

/* ---- dump ---- */

void daemonset_controller_dump(const DaemonSetController *controller, FILE *out) {
        const DaemonSetSyncPass *pass = &controller->pass;
        const Pod *orphan;

        dump_section(out, "DaemonSets");
        dump_line(out, 1, "passes: %u", pass->generation);
        dump_timer(out, 1, "next pass", controller->timer);
        for (size_t i = 0; i < controller->n_sets; i++)
                daemonset_state_dump(controller->sets[i], steady_now_usec(controller->config.clock),
                                     out);
        for (size_t i = 0; (orphan = orphan_pods_get(pass->orphans, i)); i++)
                dump_line(out, 1, "orphan: %s/%s", orphan->metadata.namespace,
                          orphan->metadata.name);
        strv_foreach(warning, controller->warnings)
                dump_line(out, 1, "warning: %s", *warning);
}
