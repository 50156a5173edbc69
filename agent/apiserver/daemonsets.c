/* SPDX-License-Identifier: Apache-2.0 */
/* DaemonSets of the API server that this node places by itself, because nobody else does: the
 * controller manager says that it is alive by a lease, which is looked at once a minute. As long as
 * it is renewed its pods are bound here and ours are not made; when it has not been for a minute,
 * or there is none, the sets are listed and followed. What is not known changes nothing: a server
 * that is away or that refuses is no news of a controller. */

#include "agent/apiserver/apiserver-private.h"

#include "agent/model/schema.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/log.h"

#include <jansson.h>

#define LEASE_POLL_USEC  (60 * USEC_PER_SEC)
#define LEASE_RETRY_USEC (10 * USEC_PER_SEC) /* while it is not known who places them */

static const char controller_lease_path[] =
        "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/kube-controller-manager";

typedef struct WatchedDaemonSet {
        DaemonSet *set;
        unsigned generation; /* of the list that had it last */
} WatchedDaemonSet;

struct ApiServerDaemonSets {
        ApiServerSync *api;
        LIST_OF(WatchedDaemonSet) sets;
        unsigned generation;
        bool has_unreadable;      /* something in the list cannot be read: who knows which it is */
        KubeReflector *reflector; /* while this node places them */
        KubeRequest *request;     /* for the lease */
        sd_event_source *timer;
        char *renewed;           /* the lease's renewTime as it was last; or NULL */
        uint64_t renewed_at;     /* boot time, when we saw it first */
        bool is_placement_known; /* who places them */
        bool is_placed_here;
        char *last_error;
        bool is_lease_denied; /* that is the trouble */
};

/* ---- the sets ---- */

static void remove_daemonset_at(ApiServerDaemonSets *sets, size_t i) {
        daemonset_free(sets->sets.items[i].set);
        sets->sets.items[i] = sets->sets.items[--sets->sets.n];
}

static WatchedDaemonSet *find_watched_daemonset(ApiServerDaemonSets *sets, const char *namespace,
                                                const char *name) {
        for (size_t i = 0; i < sets->sets.n; i++) {
                const ObjectMeta *metadata = &sets->sets.items[i].set->metadata;

                if (streq(metadata->namespace, namespace) && streq(metadata->name, name))
                        return &sets->sets.items[i];
        }
        return NULL;
}

static int put_watched_daemonset_take(ApiServerDaemonSets *sets, DaemonSet *set) {
        WatchedDaemonSet *there = find_watched_daemonset(sets, set->metadata.namespace,
                                                         set->metadata.name),
                         *longer;

        if (there) {
                daemonset_free(there->set);
                *there = (WatchedDaemonSet){ set, sets->generation };
                return 0;
        }
        longer = reallocarray(sets->sets.items, sets->sets.n + 1, sizeof(*longer));
        if (!longer)
                return -ENOMEM;
        sets->sets.items = longer;
        longer[sets->sets.n++] = (WatchedDaemonSet){ set, sets->generation };
        return 0;
}

int apiserver_restore_daemonset(const DaemonSet *set, void *userdata) {
        const ApiServerSync *api = userdata;
        DaemonSet *copy;
        int r = daemonset_copy(set, &copy);

        if (r >= 0)
                r = put_watched_daemonset_take(api->daemonsets, copy);
        return r;
}

/* ---- what the server says ---- */

/* 'status' of HTTP; NULL: there is none. */
static void set_daemonset_watch_error(ApiServerDaemonSets *sets, const char *sentence,
                                      unsigned status) {
        apiserver_set_permission_error(sets->api, PERMISSION_DAEMONSETS, sentence, status);
        if (streq_ptr(sets->last_error, sentence))
                return;
        free(sets->last_error);
        sets->last_error = sentence ? strdup(sentence) : NULL;
        if (sentence)
                log_warning("DaemonSets of the API server: %s", sentence);
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
        int r = manifest_parse_api("daemonset", "DaemonSet", json, length,
                                   sets->api->config.node_name, &objects, reterr);

        if (r < 0)
                return r;
        set = objects.daemonsets.items[0];
        objects.daemonsets.n = 0;
        r = put_watched_daemonset_take(sets, set);
        if (r < 0)
                daemonset_free(set);
        return r;
}

static void on_daemonset_object(KubeWatchEvent change, const char *json, size_t length,
                                void *userdata) {
        ApiServerDaemonSets *sets = userdata;
        cleanup_with(kube_object_summary_done) KubeObjectSummary metadata = { 0 };
        cleanup_error Error error = ERROR_NULL;
        int r = kube_object_summary_parse(json, length, &metadata, &error);

        /* One that waits for its pods to go wants none. */
        if (r >= 0 && (change == KUBE_DELETED || metadata.is_deleting))
                forget_watched_daemonset(sets, metadata.namespace, metadata.name);
        else if (r >= 0)
                r = update_watched_daemonset(sets, json, length, &error);
        if (r < 0) /* it stays as it was */
                log_error("DaemonSet '%s/%s' of the API server: %s", strna(metadata.namespace),
                          strna(metadata.name), error_message(&error, r));
        if (r < 0 && metadata.name) {
                WatchedDaemonSet *there =
                        find_watched_daemonset(sets, metadata.namespace, metadata.name);

                if (there)
                        there->generation = sets->generation;
        }
        sets->has_unreadable = sets->has_unreadable || (r < 0 && !metadata.name);
        if (change != KUBE_LISTED)
                apiserver_schedule_recompute(sets->api);
}

static void on_daemonset_list_begin(void *userdata) {
        ApiServerDaemonSets *sets = userdata;

        sets->generation++;
        sets->has_unreadable = false;
}

static void on_daemonset_list_end(bool is_complete, void *userdata) {
        ApiServerDaemonSets *sets = userdata;

        for (size_t i = sets->sets.n; is_complete && !sets->has_unreadable && i-- > 0;)
                if (sets->sets.items[i].generation != sets->generation)
                        remove_daemonset_at(sets, i);
        apiserver_schedule_recompute(sets->api);
}

static void on_daemonset_watch_error(const char *error, unsigned status, void *userdata) {
        ApiServerDaemonSets *sets = userdata;

        sets->is_lease_denied = false;
        if (status == 403)
                set_daemonset_watch_error(sets,
                                          "this node may not list them; it needs the ClusterRole "
                                          "mainstay-node that the package brings",
                                          status);
        else if (!apiserver_is_unreachable(sets->api, error, status))
                set_daemonset_watch_error(sets, error, status);
}

static void watch_daemonsets(ApiServerDaemonSets *sets) {
        int r = kube_reflector_new(sets->api->config.event,
                                   &(KubeReflectorSpec){ .client = sets->api->client,
                                                         .path = "/apis/apps/v1/daemonsets",
                                                         .on_object = on_daemonset_object,
                                                         .on_list_begin = on_daemonset_list_begin,
                                                         .on_list_end = on_daemonset_list_end,
                                                         .on_error = on_daemonset_watch_error,
                                                         .userdata = sets },
                                   &sets->reflector);
        if (r < 0)
                (void) log_error_errno(r, "Cannot follow the DaemonSets of the API server");
}

/* ---- whose they are ---- */

static void set_daemonset_placement(ApiServerDaemonSets *sets, bool is_placed_here) {
        if (sets->is_placement_known && sets->is_placed_here == is_placed_here)
                return;
        log_info(is_placed_here ? "No controller manager places DaemonSets, so this node does"
                                : "The controller manager places DaemonSets");
        sets->is_placement_known = true;
        sets->is_placed_here = is_placed_here;
        if (is_placed_here)
                watch_daemonsets(sets);
        else {
                sets->reflector = kube_reflector_free(sets->reflector);
                set_daemonset_watch_error(sets, NULL, 0);
        }
        apiserver_schedule_recompute(sets->api);
}

/* Whether the lease is renewed is seen by its being another than before: no clock of anybody's is
 * asked. */
static void check_controller_lease(ApiServerDaemonSets *sets, const KubeResponse *answer) {
        cleanup_with(json_decrefp) json_t *lease =
                json_loadb(answer->body, answer->length, 0, NULL);
        const json_t *spec = json_object_get(lease, "spec");
        const char *renewed = json_string_value(json_object_get(spec, "renewTime"));
        const char *holder = json_string_value(json_object_get(spec, "holderIdentity"));
        uint64_t now = now_boottime_usec();

        if (!renewed || !holder || !holder[0]) {
                set_daemonset_placement(sets, true);
                return;
        }
        if (!sets->renewed) {
                sets->renewed_at = now;
                sets->renewed = strdup(renewed);
        } else if (!streq(sets->renewed, renewed)) {
                free(sets->renewed);
                sets->renewed = strdup(renewed);
                sets->renewed_at = now;
                set_daemonset_placement(sets, false);
        } else if (now - sets->renewed_at >= LEASE_POLL_USEC)
                set_daemonset_placement(sets, true);
}

/* Who was refused is in no hurry to hear it again. */
static void arm_lease_poll_timer(ApiServerDaemonSets *sets) {
        bool is_settled = sets->is_placement_known || sets->last_error;

        (void) sd_event_source_set_time_relative(sets->timer,
                                                 is_settled ? LEASE_POLL_USEC : LEASE_RETRY_USEC);
        (void) sd_event_source_set_enabled(sets->timer, SD_EVENT_ONESHOT);
}

static void note_lease_denied(ApiServerDaemonSets *sets) {
        sets->is_lease_denied = true;
        set_daemonset_watch_error(
                sets,
                "this node may not see whether a controller manager is alive, so it leaves "
                "them to it; it needs the ClusterRole mainstay-node that the package brings",
                403);
}

static void on_controller_lease(const KubeResponse *answer, void *userdata) {
        ApiServerDaemonSets *sets = userdata;

        sets->request = NULL;
        if (!answer->error && answer->status != 403 && sets->is_lease_denied) {
                sets->is_lease_denied = false;
                set_daemonset_watch_error(sets, NULL, 0);
        }
        if (!answer->error && answer->status == 200)
                check_controller_lease(sets, answer);
        else if (!answer->error && answer->status == 404)
                set_daemonset_placement(sets, true);
        else if (!answer->error && answer->status == 403)
                note_lease_denied(sets);
        arm_lease_poll_timer(sets);
}

static int on_lease_poll_timer(sd_event_source *source, uint64_t usec, void *userdata) {
        ApiServerDaemonSets *sets = userdata;
        int r = kube_client_start_request(sets->api->client,
                                          &(KubeRequestSpec){ .method = "GET",
                                                              .path = controller_lease_path,
                                                              .on_done = on_controller_lease,
                                                              .userdata = sets },
                                          &sets->request, NULL);

        if (r < 0)
                arm_lease_poll_timer(sets);
        return 0;
}

int apiserver_daemonsets_new(ApiServerSync *api) {
        ApiServerDaemonSets *sets = calloc(1, sizeof(*sets));

        if (!sets)
                return -ENOMEM;
        sets->api = api;
        api->daemonsets = sets;
        return 0;
}

int apiserver_start_daemonsets(ApiServerSync *api) {
        ApiServerDaemonSets *sets = api->daemonsets;

        switch (api->config.daemonsets_by) {
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
        return sd_event_add_time_relative(api->config.event, &sets->timer, CLOCK_BOOTTIME, 0,
                                          USEC_PER_SEC, on_lease_poll_timer, sets);
}

void apiserver_free_daemonsets(ApiServerSync *api) {
        ApiServerDaemonSets *sets = api->daemonsets;

        if (!sets)
                return;
        kube_request_cancel(sets->request);
        kube_reflector_free(sets->reflector);
        sd_event_source_disable_unref(sets->timer);
        while (sets->sets.n > 0)
                remove_daemonset_at(sets, sets->sets.n - 1);
        free(sets->sets.items);
        free(sets->renewed);
        free(sets->last_error);
        free(sets);
        api->daemonsets = NULL;
}

const char *apiserver_daemonsets_placed_by(const ApiServerSync *api) {
        const ApiServerDaemonSets *sets = api->daemonsets;

        if (!sets || !sets->is_placement_known)
                return NULL;
        return sets->is_placed_here ? "this node" : "the controller manager";
}

/* ---- wishes ---- */

/* The controller has bound one of its own here: then ours would be one too many, whether or not the
 * controller is still alive. Until it has, ours goes on. */
static bool has_bound_pod(const ApiServerSync *api, const DaemonSet *set) {
        for (const ApiServerPod *pod = api->pods; pod; pod = pod->next) {
                const OwnerReference *owner =
                        pod->desired ? object_controller(&pod->desired->metadata) : NULL;

                if (owner && streq(owner->uid, set->metadata.uid))
                        return true;
        }
        return false;
}

int apiserver_add_daemonsets(DesiredDaemonSets *desired, void *userdata) {
        static const PodSource source = { .kind = POD_SOURCE_APISERVER_DAEMONSET };
        const ApiServerSync *api = userdata;
        ApiServerDaemonSets *sets = api->daemonsets;

        for (size_t i = sets->sets.n; i-- > 0;) {
                bool has_controller_pod = has_bound_pod(api, sets->sets.items[i].set);

                if (has_controller_pod && sets->is_placement_known && !sets->is_placed_here)
                        remove_daemonset_at(sets, i); /* the controller manager places it */
                else if (!has_controller_pod &&
                         desired_daemonsets_add(desired, &source, sets->sets.items[i].set) < 0)
                        return -ENOMEM;
        }
        return 0;
}
