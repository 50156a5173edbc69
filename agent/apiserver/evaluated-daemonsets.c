/* SPDX-License-Identifier: Apache-2.0 */
/* Watches the controller manager's Lease, and the DaemonSets while this node evaluates them. */

#include "agent/apiserver/evaluated-daemonsets.h"

#include "agent/apiserver/controller-lease.h"
#include "agent/daemonset/rules/rules.h"
#include "agent/kubeclient/object-summary.h"
#include "agent/kubeclient/reflector.h"
#include "agent/kubeclient/request-back-off.h"
#include "agent/manifest/manifest.h"
#include "agent/model/object-identity.h"
#include "agent/model/schema.h"
#include "common/array.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/dump.h"
#include "common/event-source.h"
#include "common/log.h"
#include "common/text.h"

static const char controller_lease_path[] =
        "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-controller-manager";

typedef struct WatchedDaemonSet {
        DaemonSet *set;
        unsigned generation; /* of the last list that contained it */
        char *refusal;       /* the logged reason why its bound pod is not replaced; or NULL */
} WatchedDaemonSet;

struct ApiServerDaemonSets {
        ApiServerDaemonSetsSpec spec;
        KubeClient *client;
        LIST_OF(WatchedDaemonSet) sets;
        unsigned generation;
        bool has_unreadable;      /* the list contains an object whose name cannot be parsed */
        KubeReflector *reflector; /* while this node evaluates them, or has pods for any of them */
        KubeRequest *request;     /* for the Lease */
        sd_event_source *timer;
        ControllerLease lease;
        bool is_placement_known; /* it is known whether this node or the controller manager places
                                  * them */
        bool is_placed_here;
        char *last_error;
        bool is_lease_denied; /* last_error contains the reason */
};

/* ---- the sets ---- */

static void remove_daemonset_at(ApiServerDaemonSets *sets, size_t i) {
        daemonset_free(sets->sets.items[i].set);
        free(sets->sets.items[i].refusal);
        sets->sets.items[i] = sets->sets.items[--sets->sets.n];
}

static WatchedDaemonSet *find_watched_daemonset(ApiServerDaemonSets *sets, const char *namespace,
                                                const char *name) {
        for (size_t i = 0; i < sets->sets.n; i++) {
                if (object_has_name(&sets->sets.items[i].set->metadata, namespace, name))
                        return &sets->sets.items[i];
        }
        return NULL;
}

static int put_watched_daemonset_take(ApiServerDaemonSets *sets, DaemonSet *set) {
        WatchedDaemonSet *there =
                find_watched_daemonset(sets, set->metadata.namespace, set->metadata.name);

        if (there) {
                daemonset_free(there->set);
                there->set = set;
                there->generation = sets->generation;
                return 0;
        }
        there = ARRAY_APPEND(sets->sets.items, sets->sets.n);
        if (!there)
                return -ENOMEM;
        *there = (WatchedDaemonSet){ .set = set, .generation = sets->generation };
        return 0;
}

int apiserver_daemonsets_restore(ApiServerDaemonSets *sets, const DaemonSet *set) {
        DaemonSet *copy;
        int r = daemonset_copy(set, &copy);

        return r < 0 ? r : put_watched_daemonset_take(sets, copy);
}

/* ---- the watch ---- */

/* 'error' is NULL if there is none; 'status' is the HTTP status. */
static void set_daemonset_watch_error(ApiServerDaemonSets *sets, const char *error,
                                      unsigned status) {
        connection_status_set_permission(sets->spec.connection, PERMISSION_DAEMONSETS, error,
                                         status);
        if (streq_ptr(sets->last_error, error))
                return;
        free(sets->last_error);
        sets->last_error = error ? strdup(error) : NULL;
        if (error)
                log_warning("Cannot evaluate the DaemonSets of the API server: %s; %s", error,
                            kube_back_off_retry_hint(status));
}

static void forget_watched_daemonset(ApiServerDaemonSets *sets, const char *namespace,
                                     const char *name) {
        WatchedDaemonSet *there = find_watched_daemonset(sets, namespace, name);

        if (there)
                remove_daemonset_at(sets, (size_t) (there - sets->sets.items));
}

static int update_watched_daemonset(ApiServerDaemonSets *sets, const char *json, size_t length,
                                    Error *reterr) {
        cleanup_with(manifest_objects_done) ManifestObjects objects = { 0 };
        DaemonSet *set;
        int r = manifest_parse_api("daemonset", "DaemonSet", json, length, sets->spec.node_name,
                                   &objects, reterr);

        if (r < 0)
                return r;
        set = objects.daemonsets.items[0];
        objects.daemonsets.n = 0;
        if (!sets->is_placed_here &&
            !find_watched_daemonset(sets, set->metadata.namespace, set->metadata.name)) {
                daemonset_free(set); /* the controller manager places it from the start */
                return 0;
        }
        r = put_watched_daemonset_take(sets, set);
        if (r < 0)
                daemonset_free(set);
        return r;
}

/* A set that waits for its pods to terminate desires no pod. */
static int handle_daemonset_change(ApiServerDaemonSets *sets, KubeWatchEvent change,
                                   const KubeObjectSummary *metadata, const char *json,
                                   size_t length, Error *reterr) {
        if (change != KUBE_DELETED && !metadata->is_deleting)
                return update_watched_daemonset(sets, json, length, reterr);
        forget_watched_daemonset(sets, metadata->namespace, metadata->name);
        return 0;
}

/* Keeps the last valid version in use. */
static void keep_unreadable_daemonset(ApiServerDaemonSets *sets,
                                      const KubeObjectSummary *metadata) {
        WatchedDaemonSet *there;

        if (!metadata->name) {
                sets->has_unreadable = true;
                return;
        }
        there = find_watched_daemonset(sets, metadata->namespace, metadata->name);
        if (there)
                there->generation = sets->generation;
}

static void on_daemonset_object(KubeWatchEvent change, const char *json, size_t length,
                                void *userdata) {
        ApiServerDaemonSets *sets = userdata;
        cleanup_with(kube_object_summary_done) KubeObjectSummary metadata = { 0 };
        cleanup_error Error error = ERROR_NULL;
        int r = kube_object_summary_parse(json, length, &metadata, &error);

        if (r >= 0)
                r = handle_daemonset_change(sets, change, &metadata, json, length, &error);
        if (r < 0) {
                log_error("Cannot read DaemonSet '%s/%s' of the API server: %s; the last valid "
                          "version stays in use",
                          strna(metadata.namespace), strna(metadata.name),
                          error_message(&error, r));
                keep_unreadable_daemonset(sets, &metadata);
        }
        if (change != KUBE_LISTED)
                sets->spec.on_recompute_due(sets->spec.userdata);
}

static void on_daemonset_list_begin(void *userdata) {
        ApiServerDaemonSets *sets = userdata;

        sets->generation++;
        sets->has_unreadable = false;
}

static bool is_daemonset_listed(const char *uid, void *userdata) {
        const ApiServerDaemonSets *sets = userdata;

        for (size_t i = 0; i < sets->sets.n; i++)
                if (object_has_uid(&sets->sets.items[i].set->metadata, uid))
                        return true;
        return false;
}

static void on_daemonset_list_end(bool is_complete, void *userdata) {
        ApiServerDaemonSets *sets = userdata;

        for (size_t i = sets->sets.n; is_complete && !sets->has_unreadable && i-- > 0;)
                if (sets->sets.items[i].generation != sets->generation)
                        remove_daemonset_at(sets, i);
        if (is_complete && !sets->has_unreadable && sets->is_placed_here)
                admitted_pods_retain(sets->spec.admitted, is_daemonset_listed, sets);
        sets->spec.on_recompute_due(sets->spec.userdata);
}

static void on_daemonset_watch_error(const char *error, unsigned status, void *userdata) {
        ApiServerDaemonSets *sets = userdata;

        sets->is_lease_denied = false;
        if (status == 403)
                set_daemonset_watch_error(sets,
                                          "403 Forbidden (this node may not list daemonsets.apps; "
                                          "it needs the ClusterRole mainstay-node of the package)",
                                          status);
        else if (!connection_status_is_unreachable(sets->spec.connection, error, status))
                set_daemonset_watch_error(sets, error, status);
}

static void watch_daemonsets(ApiServerDaemonSets *sets) {
        int r = kube_reflector_new(sets->spec.event,
                                   &(KubeReflectorSpec){ .client = sets->client,
                                                         .path = "/apis/apps/v1/daemonsets",
                                                         .on_object = on_daemonset_object,
                                                         .on_list_begin = on_daemonset_list_begin,
                                                         .on_list_end = on_daemonset_list_end,
                                                         .on_error = on_daemonset_watch_error,
                                                         .userdata = sets },
                                   &sets->reflector);
        if (r < 0)
                log_error("Cannot watch the DaemonSets of the API server: %s; evaluating the known "
                          "ones",
                          strerror(-r));
}

/* ---- placement ---- */

/* Pods that this node has created keep running until the controller manager has bound others. Until
 * then, the node must detect that their set is changed or removed. */
static void watch_needed_daemonsets(ApiServerDaemonSets *sets) {
        sets->reflector = kube_reflector_free(sets->reflector);
        if (sets->is_placed_here || sets->sets.n > 0)
                watch_daemonsets(sets);
        else
                set_daemonset_watch_error(sets, NULL, 0);
}

static void set_daemonset_placement(ApiServerDaemonSets *sets, bool is_placed_here) {
        if (sets->is_placement_known && sets->is_placed_here == is_placed_here)
                return;
        log_info(is_placed_here ? "This node places the DaemonSets of the API server: no "
                                  "controller manager renews its Lease"
                                : "The controller manager places the DaemonSets of the API server");
        sets->is_placement_known = true;
        sets->is_placed_here = is_placed_here;
        watch_needed_daemonsets(sets);
        sets->spec.on_recompute_due(sets->spec.userdata);
}

static void check_controller_lease(ApiServerDaemonSets *sets, const KubeResponse *answer,
                                   uint64_t *ret_next_look_usec) {
        switch (controller_lease_observe(&sets->lease, answer->body, answer->length,
                                         now_boottime_usec(), now_realtime_usec(),
                                         ret_next_look_usec)) {
        case CONTROLLER_ACTIVE:
                set_daemonset_placement(sets, false);
                break;
        case CONTROLLER_ABSENT:
                set_daemonset_placement(sets, true);
                break;
        default:
                break;
        }
}

/* A refusal is retried at the same interval at which a known placement is checked. */
static uint64_t next_lease_look_usec(const ApiServerDaemonSets *sets) {
        bool is_settled = sets->is_placement_known || sets->last_error;

        return is_settled ? controller_lease_poll_usec : controller_lease_first_usec;
}

static void arm_lease_poll_timer(ApiServerDaemonSets *sets, uint64_t usec) {
        (void) event_timer_arm(sets->timer, usec);
}

static void note_lease_denied(ApiServerDaemonSets *sets) {
        sets->is_lease_denied = true;
        set_daemonset_watch_error(sets,
                                  "403 Forbidden (this node may not get the Lease of the "
                                  "controller manager, so it leaves DaemonSets to the controller "
                                  "manager; it needs the ClusterRole mainstay-node of the package)",
                                  403);
}

static void on_controller_lease(const KubeResponse *answer, void *userdata) {
        ApiServerDaemonSets *sets = userdata;
        uint64_t next_look = 0;

        sets->request = NULL;
        if (!answer->error && answer->status != 403 && sets->is_lease_denied) {
                sets->is_lease_denied = false;
                set_daemonset_watch_error(sets, NULL, 0);
        }
        if (!answer->error && answer->status == 200)
                check_controller_lease(sets, answer, &next_look);
        else if (!answer->error && answer->status == 404 &&
                 controller_lease_is_not_found(strna(answer->body), answer->length))
                set_daemonset_placement(sets, true);
        else if (!answer->error && answer->status == 403)
                note_lease_denied(sets);
        if (sets->is_placement_known && !sets->is_placed_here && sets->sets.n == 0 &&
            sets->reflector)
                watch_needed_daemonsets(sets);
        arm_lease_poll_timer(sets, next_look > 0 ? next_look : next_lease_look_usec(sets));
}

static int on_lease_poll_timer(sd_event_source *source, uint64_t usec, void *userdata) {
        ApiServerDaemonSets *sets = userdata;
        int r = kube_client_start_request(sets->client,
                                          &(KubeRequestSpec){ .method = "GET",
                                                              .path = controller_lease_path,
                                                              .on_done = on_controller_lease,
                                                              .userdata = sets },
                                          &sets->request, NULL);

        if (r < 0)
                arm_lease_poll_timer(sets, next_lease_look_usec(sets));
        return 0;
}

int apiserver_daemonsets_new(const ApiServerDaemonSetsSpec *spec, ApiServerDaemonSets **ret) {
        ApiServerDaemonSets *sets = calloc(1, sizeof(*sets));

        if (!sets)
                return -ENOMEM;
        sets->spec = *spec;
        *ret = sets;
        return 0;
}

int apiserver_daemonsets_start(ApiServerDaemonSets *sets, KubeClient *client) {
        sets->client = client;
        switch (sets->spec.daemonsets_by) {
        case DAEMONSETS_NODE:
                set_daemonset_placement(sets, true);
                return 0;
        case DAEMONSETS_CONTROLLER:
                set_daemonset_placement(sets, false);
                return 0;
        case DAEMONSETS_UNSET:
        case DAEMONSETS_AUTO:
        case N_DAEMONSETS_BY:
                break;
        }
        return sd_event_add_time_relative(sets->spec.event, &sets->timer, CLOCK_BOOTTIME, 0,
                                          USEC_PER_SEC, on_lease_poll_timer, sets);
}

ApiServerDaemonSets *apiserver_daemonsets_free(ApiServerDaemonSets *sets) {
        if (!sets)
                return NULL;
        kube_request_cancel(sets->request);
        kube_reflector_free(sets->reflector);
        sd_event_source_disable_unref(sets->timer);
        while (sets->sets.n > 0)
                remove_daemonset_at(sets, sets->sets.n - 1);
        free(sets->sets.items);
        controller_lease_done(&sets->lease);
        free(sets->last_error);
        free(sets);
        return NULL;
}

const char *apiserver_daemonsets_placed_by(const ApiServerDaemonSets *sets) {
        if (!sets->is_placement_known)
                return NULL;
        return sets->is_placed_here ? "this node" : "the controller manager";
}

/* ---- pods that the controller has bound ---- */

static const char set_generation_annotation[] = "deprecated.daemonset.template.generation";
static const char pod_generation_label[] = "pod-template-generation";

static bool is_older_generation(const DaemonSet *set, const Pod *pod) {
        const char *desired = string_map_get(&set->metadata.annotations, set_generation_annotation);
        const char *generation = string_map_get(&pod->metadata.labels, pod_generation_label);

        return desired && generation && strtoll(generation, NULL, 10) < strtoll(desired, NULL, 10);
}

/* The pod of the set's current template; NULL if 'pod' may stay. The template may have been changed
 * back, which the controller detects by the hash of its revision. 0 or -ENOMEM. */
static int make_successor(const ApiServerDaemonSets *sets, const DaemonSet *set, const Pod *pod,
                          Pod **ret) {
        const Pod *template = &set->spec.template;
        cleanup_with(pod_freep) Pod *made = NULL;
        char hash[REVISION_HASH_SIZE];
        int r;

        if (set->spec.update_strategy.type != DAEMONSET_ROLLING_UPDATE ||
            !is_older_generation(set, pod))
                return 0;
        r = daemonset_revision_hash(template, hash);
        if (r < 0)
                return r;
        r = daemonset_make_pod(set, template, hash, 1, sets->spec.node_name, &made);
        if (r < 0)
                return r;
        r = is_pod_made_alike(made, pod);
        if (r == 0)
                *ret = TAKE_PTR(made);
        return MIN(r, 0);
}

static void set_successor_refusal(const ApiServerDaemonSets *sets, WatchedDaemonSet *watched,
                                  const DaemonSetRefusal *refusal) {
        const ObjectMeta *metadata = &watched->set->metadata;

        if (streq_ptr(watched->refusal, refusal->message))
                return;
        free(watched->refusal);
        watched->refusal = refusal->message ? strdup(refusal->message) : NULL;
        if (!refusal->reason)
                return;
        log_warning("Not replacing the pod of DaemonSet '%s/%s', whose template has changed: %s",
                    metadata->namespace, metadata->name, strna(refusal->message));
        sets->spec.on_event(&(PodEvent){ .daemonset = watched->set,
                                         .kind = POD_EVENT_WARNING,
                                         .reason = refusal->reason,
                                         .message = strna(refusal->message) },
                            sets->spec.userdata);
}

/* No pod is stopped in favour of one that must not be created. */
static bool should_replace_bound_pod(const ApiServerDaemonSets *sets, WatchedDaemonSet *watched,
                                     const Pod *pod) {
        cleanup_with(daemonset_refusal_done) DaemonSetRefusal refusal = { 0 };
        cleanup_with(pod_freep) Pod *successor = NULL;
        int r = make_successor(sets, watched->set, pod, &successor);

        if (r >= 0 && successor)
                r = apiserver_daemonsets_admit(sets, watched->set, successor, &refusal);
        if (r >= 0)
                set_successor_refusal(sets, watched, &refusal);
        return r > 0;
}

/* Does the controller's work: deletes a pod that must not run here, or that is outdated. */
static void retire_if_outdated(ApiServerDaemonSets *sets, WatchedDaemonSet *watched,
                               const Pod *pod) {
        const DaemonSet *set = watched->set;
        cleanup_with(daemonset_decision_done) DaemonSetDecision decision = { 0 };
        cleanup_free char *why = NULL;

        if (daemonset_evaluate_placement(set, sets->spec.node, &(NodePods){ 0 },
                                         now_realtime_usec(), &decision) < 0)
                return;
        if (decision.verdict == DAEMONSET_SHOULD_STOP)
                why = text_format("DaemonSet %s/%s no longer selects this node: %s",
                                  set->metadata.namespace, set->metadata.name, strna(decision.why));
        else if (should_replace_bound_pod(sets, watched, pod))
                why = text_format("the template of DaemonSet %s/%s has changed",
                                  set->metadata.namespace, set->metadata.name);
        if (why)
                sets->spec.retire_bound_pod(set, why, sets->spec.userdata);
}

/* ---- the desired DaemonSets ---- */

static bool has_daemonset_in(const char *namespace, void *userdata) {
        const ApiServerDaemonSets *sets = userdata;

        for (size_t i = 0; i < sets->sets.n; i++)
                if (streq(sets->sets.items[i].set->metadata.namespace, namespace))
                        return true;
        return false;
}

/* If the controller has bound a pod of the DaemonSet here, a pod of this node would be a duplicate,
 * even if the controller is no longer alive. Until then, this node's pod keeps running. */
int apiserver_daemonsets_add_desired(ApiServerDaemonSets *sets, DesiredDaemonSets *desired) {
        static const PodSource source = { .kind = POD_SOURCE_APISERVER_DAEMONSET };

        for (size_t i = sets->sets.n; i-- > 0;) {
                const DaemonSet *set = sets->sets.items[i].set;
                const Pod *bound = sets->spec.find_bound_pod(set, sets->spec.userdata);

                if (!bound && desired_daemonsets_add(desired, &source, set) < 0)
                        return -ENOMEM;
                if (!bound || !sets->is_placement_known)
                        continue;
                if (sets->is_placed_here)
                        retire_if_outdated(sets, &sets->sets.items[i], bound);
                else
                        remove_daemonset_at(sets, i); /* the controller's pod has replaced this
                                                       * node's */
        }
        namespace_policies_retain(sets->spec.policies, has_daemonset_in, sets);
        return 0;
}

int apiserver_daemonsets_admit(const ApiServerDaemonSets *sets, const DaemonSet *set,
                               const Pod *pod, DaemonSetRefusal *ret) {
        const DaemonSetAdmission admission = {
                .daemonsets_by = sets->spec.daemonsets_by,
                .namespaces = sets->spec.namespaces,
                .admitted = sets->spec.admitted,
                .policies = sets->spec.policies,
        };

        return daemonset_admission_check(&admission, set, pod, ret);
}

void apiserver_daemonsets_dump(const ApiServerDaemonSets *sets, FILE *out) {
        char age[DUMP_DURATION_SIZE];

        dump_line(out, 1, "DaemonSets: %zu, placed by: %s", sets->sets.n,
                  !sets->is_placement_known ? "not known yet"
                  : sets->is_placed_here    ? "this node"
                                            : "the controller manager");
        if (sets->lease.renewed)
                dump_line(out, 2, "Lease of the controller manager: last renewal seen %s ago",
                          dump_format_duration(age, now_boottime_usec() - sets->lease.seen_at));
        if (sets->last_error)
                dump_line(out, 2, "last error: %s", sets->last_error);
        dump_timer(out, 2, "next check of the Lease", sets->timer);
        if (sets->reflector)
                kube_reflector_dump(sets->reflector, out);
}
